// Encoders of Q4_0, Q4_1, Q5_0 and Q5_1 without importance. Minimums and maximums do not depend on the order, except
// for which of two equal values comes first. Where that matters, the code searches for it.

#include "plugins/simd/simple_types.h"

#include <cmath>
#include <span>

#include "plugins/simd/four_blocks.h"

namespace ggufmill::simd {
namespace {

constexpr int kCount = 32;
constexpr int kStep = static_cast<int>(kLanes);
constexpr int kVectors = kCount / kStep;

// The values of one block, in order.
struct Values {
  Floats vectors[kVectors];

  explicit Values(const float* x) {
    for (int v = 0; v < kVectors; ++v) vectors[v] = hn::LoadU(kFloats, x + v * kStep);
  }
  float least() const {
    Floats low = vectors[0];
    for (int v = 1; v < kVectors; ++v) low = hn::Min(low, vectors[v]);
    return hn::GetLane(hn::MinOfLanes(kFloats, low));
  }
  float greatest() const {
    Floats high = vectors[0];
    for (int v = 1; v < kVectors; ++v) high = hn::Max(high, vectors[v]);
    return hn::GetLane(hn::MaxOfLanes(kFloats, high));
  }
};

struct Levels {
  Ints vectors[kVectors];
};

float reciprocal_or_zero(float d) { return d != 0 ? 1.0f / d : 0.0f; }

// Returns the first value of greatest magnitude, with its sign. The bits of magnitudes order like integers, with NaNs
// above all numbers.
float extreme(const Values& values, const float* x) {
  Words magnitudes[kVectors];
  Words greatest = words(0);
  for (int v = 0; v < kVectors; ++v) {
    magnitudes[v] = as_words(hn::Abs(values.vectors[v]));
    greatest = hn::Max(greatest, magnitudes[v]);
  }
  greatest = hn::MaxOfLanes(kWords, greatest);
  const std::uint32_t bits = hn::GetLane(greatest);
  if (HWY_UNLIKELY(bits > 0x7f800000)) return reference::extreme_of(std::span(x, kCount));
  std::uint32_t equal = 0;
  for (int v = 0; v < kVectors; ++v) equal |= mask_bits(mask_of(magnitudes[v] == greatest)) << (v * kStep);
  return bits == 0 ? 0 : x[__builtin_ctz(equal)];
}

// Returns the first of the least values. This matters for zeros, because their sign is stored.
float first_least(const Values& values, const float* x) {
  const float low = values.least();
  if (low != 0) return low;
  for (int j = 0; j < kCount; ++j)
    if (x[j] == 0) return x[j];
  return low;  // reached only with NaNs
}

Ints sign_extend(Ints value) { return hn::ShiftRight<24>(hn::ShiftLeft<24>(value)); }

// Computes levels 0 .. 2 * kHalf - 1 for x = d * (level - kHalf), with ties rounded up; the extreme value gets level 0.
// Returns d.
template <int kHalf>
float symmetric_levels(const float* x, Levels& levels) {
  const Values values(x);
  const float d = extreme(values, x) / float{-kHalf};
  const Floats inverse = floats(reciprocal_or_zero(d));
  for (int v = 0; v < kVectors; ++v) {
    const Ints level = to_ints(values.vectors[v] * inverse + floats(float{kHalf} + 0.5f));
    levels.vectors[v] = hn::Min(sign_extend(level), ints(2 * kHalf - 1));
  }
  return d;
}

struct Line {
  float d, m;
};

// Computes levels for x = d * level + m, not yet limited to the number of bits of the type. Returns d and m.
template <int kLimit>
Line affine_levels(const float* x, Levels& levels) {
  const Values values(x);
  const float low = first_least(values, x);
  const float high = values.greatest();
  const float d = (high == low ? 0.0f : high - low) / float{kLimit};  // zeros of either sign have no range
  const Floats inverse = floats(reciprocal_or_zero(d));
  for (int v = 0; v < kVectors; ++v)
    levels.vectors[v] = to_ints((values.vectors[v] - floats(low)) * inverse + floats(0.5f));
  return {d, low};
}

void store_nibbles(const Levels& levels, std::uint8_t* qs) {
#if HWY_TARGET == HWY_AVX2
  const auto nibbles = [&](int v) {
    const Ints low = levels.vectors[v] & ints(0xf), high = levels.vectors[v + kVectors / 2] & ints(0xf);
    return (low | hn::ShiftLeft<4>(high)).raw;
  };
  const __m256i pairs = _mm256_permute4x64_epi64(_mm256_packus_epi32(nibbles(0), nibbles(1)), _MM_SHUFFLE(3, 1, 2, 0));
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(qs), bytes);
  return;
#endif
  for (int v = 0; v < kVectors / 2; ++v) {
    const Ints low = levels.vectors[v] & ints(0xf), high = levels.vectors[v + kVectors / 2] & ints(0xf);
    store_bytes(as_words(low | hn::ShiftLeft<4>(high)), qs + v * kStep);
  }
}

// Stores bit 4 of level i as bit i of the four bytes.
void store_fifth_bits(const Levels& levels, std::uint8_t* qh) {
  std::uint32_t all = 0;
  for (int v = 0; v < kVectors; ++v) {
    all |= mask_bits(mask_of(hn::TestBit(as_words(levels.vectors[v]), words(16)))) << (v * kStep);
  }
  for (int i = 0; i < 4; ++i) qh[i] = static_cast<std::uint8_t>(all >> (8 * i));
}

// The least and the greatest values of each lane of a block.
struct Range {
  Floats low, high;
  Mask odd;  // lanes with NaNs

  explicit Range(const Values& values) {
    low = high = values.vectors[0];
    odd = is_nan(low);
    for (int v = 1; v < kVectors; ++v) {
      low = hn::Min(low, values.vectors[v]);
      high = hn::Max(high, values.vectors[v]);
      odd = hn::Or(odd, is_nan(values.vectors[v]));
    }
  }
};

void put_nibbles(const Values& values, Floats inverse, Q4_0::Block& block) {
  Levels levels;
  for (int v = 0; v < kVectors; ++v)
    levels.vectors[v] = hn::Min(to_ints(values.vectors[v] * inverse + floats(8.5f)), ints(15));
  store_nibbles(levels, block.qs);
}

}  // namespace

bool Q4_0::encode_four(const float* x, Block* blocks) {
  const Values values[4] = {Values(x), Values(x + kCount), Values(x + 2 * kCount), Values(x + 3 * kCount)};
  const Range ranges[4] = {Range(values[0]), Range(values[1]), Range(values[2]), Range(values[3])};
  const Mask odd = hn::Or(hn::Or(ranges[0].odd, ranges[1].odd), hn::Or(ranges[2].odd, ranges[3].odd));
  const Floats low = reduce_four(ranges[0].low, ranges[1].low, ranges[2].low, ranges[3].low,
                                 [](Floats a, Floats b) { return hn::Min(a, b); });
  const Floats high = reduce_four(ranges[0].high, ranges[1].high, ranges[2].high, ranges[3].high,
                                  [](Floats a, Floats b) { return hn::Max(a, b); });
  // If both ends have the same magnitude, the first one counts.
  const Floats below = hn::Neg(low);
  const Floats extreme = choose(high > below, high, low);
  if (HWY_UNLIKELY(any(hn::Or(odd, high == below)) || !are_usual(extreme))) return false;
  const Floats d = extreme / floats(-8);
  const Floats inverse = floats(1) / d;
  put_nibbles(values[0], hn::Broadcast<0>(inverse), blocks[0]);
  put_nibbles(values[1], hn::Broadcast<1>(inverse), blocks[1]);
  put_nibbles(values[2], hn::Broadcast<2>(inverse), blocks[2]);
  put_nibbles(values[3], hn::Broadcast<3>(inverse), blocks[3]);
  store_halves(d, blocks);
  return true;
}

void Q4_0::encode(const float* x, Block& block) {
  Levels levels;
  block.d.store(symmetric_levels<8>(x, levels));
  store_nibbles(levels, block.qs);
}

void Q4_1::encode(const float* x, Block& block) {
  Levels levels;
  const Line line = affine_levels<15>(x, levels);
  block.d.store(line.d);
  block.m.store(line.m);
  for (Ints& vector : levels.vectors) vector = hn::Min(sign_extend(vector), ints(15));
  store_nibbles(levels, block.qs);
}

void Q5_0::encode(const float* x, Block& block) {
  Levels levels;
  block.d.store(symmetric_levels<16>(x, levels));
  store_nibbles(levels, block.qs);
  store_fifth_bits(levels, block.qh);
}

void Q5_1::encode(const float* x, Block& block) {
  Levels levels;
  const Line line = affine_levels<31>(x, levels);
  block.d.store(line.d);
  block.m.store(line.m);
  store_nibbles(levels, block.qs);
  store_fifth_bits(levels, block.qh);
}

}  // namespace ggufmill::simd
