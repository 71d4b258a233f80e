// Q8_KV, IQ1_BN and IQ2_BN: rows with one scale, which nothing is searched for. The lanes have values of one row.

#include "plugins/ik/simd/simple_types.h"
#include "plugins/simd/bytes.h"

namespace ggufmill::simd {
namespace {

constexpr int kStep = static_cast<int>(kLanes);

// Returns the greatest magnitude of a row; values that are NaN do not count.
float largest(const float* x, std::uint64_t count) {
  Floats sizes[4] = {floats(0), floats(0), floats(0), floats(0)};
  std::uint64_t i = 0;
  const auto take = [&](Floats& size, std::uint64_t at) {
    const Floats next = hn::Abs(hn::LoadU(kFloats, x + at));
    size = greater(next, size);
  };
  for (; i + 4 * kLanes <= count; i += 4 * kLanes)
    for (std::uint64_t part = 0; part < 4; ++part) take(sizes[part], i + part * kLanes);
  for (; i < count; i += kLanes) take(sizes[0], i);
  return hn::GetLane(hn::MaxOfLanes(kFloats, hn::Max(hn::Max(sizes[0], sizes[1]), hn::Max(sizes[2], sizes[3]))));
}

// ---- ternary types ----

// Returns 0, 1 or 2 for each value.
Words trits(const float* x, Floats threshold) {
  const Floats value = hn::LoadU(kFloats, x);
  const Words sign = choose(value < floats(0), words(0), words(2));
  return choose(hn::Abs(value) < threshold, words(1), sign);
}

// The trits of 16 weights, or what is made of them.
constexpr hn::Full128<std::uint8_t> kPart{};
using Part = hn::Vec<decltype(kPart)>;

HWY_INLINE Part trits_of_16(const float* x, Floats threshold) {
#if HWY_TARGET == HWY_AVX3
  return hn::TruncateTo(kBytes, trits(x, threshold));
#elif HWY_TARGET == HWY_AVX2
  const auto low = hn::TruncateTo(kBytes, trits(x, threshold)), high = hn::TruncateTo(kBytes, trits(x + 8, threshold));
  return hn::Combine(kPart, high, low);
#else
  alignas(16) std::uint8_t bytes[16];
  for (int i = 0; i < 16; i += kStep) store_bytes(trits(x + i, threshold), bytes + i);
  return hn::Load(kPart, bytes);
#endif
}

struct PartBytes {
  alignas(16) std::uint8_t at[16];
};

// The place of trit k of the numbers of a part, for every other byte; 0x80 gives 0. The fourth number is the last trit.
constexpr PartBytes places_of_trit(int k) {
  PartBytes places{};
  for (std::uint8_t& place : places.at) place = 0x80;
  for (int number = 0; number < 3; ++number) places.at[2 * number] = static_cast<std::uint8_t>(5 * number + k);
  if (k == 0) places.at[6] = 15;
  return places;
}
constexpr PartBytes kPlaces[5] = {places_of_trit(0), places_of_trit(1), places_of_trit(2), places_of_trit(3),
                                  places_of_trit(4)};

// Returns ceil(256 n / 243), for numbers n up to 242.
template <class Wide>
HWY_INLINE hn::Vec<Wide> stored_number(Wide wide, hn::Vec<Wide> n) {
  // n + (13 n + 242) / 243; the quotient is exact for these numbers.
  const auto quotient = hn::MulHigh(n * hn::Set(wide, 16 * 13) + hn::Set(wide, 16 * 242), hn::Set(wide, 34522));
  return n + hn::ShiftRight<11>(quotient);
}
constexpr bool is_quotient_exact() {
  for (unsigned n = 0; n <= 242; ++n)
    if ((16 * (13 * n + 242) * 34522 >> 27) != (13 * n + 242) / 243) return false;
  return true;
}
static_assert(is_quotient_exact());

// Returns the bytes of the numbers that three times five of 16 trits make, and that of the last trit.
HWY_INLINE std::uint32_t stored_numbers(Part trits) {
  const hn::Full128<std::uint16_t> wide{};
  Part number = hn::TableLookupBytesOr0(trits, hn::Load(kPart, kPlaces[4].at));
  GGUFMILL_UNROLL
  for (int k = 3; k >= 0; --k)
    number = number + number + number + hn::TableLookupBytesOr0(trits, hn::Load(kPart, kPlaces[k].at));
  const hn::Rebind<std::uint8_t, decltype(wide)> bytes{};
  const auto stored = hn::TruncateTo(bytes, stored_number(wide, hn::BitCast(wide, number)));
  return hn::GetLane(hn::BitCast(hn::Repartition<std::uint32_t, decltype(bytes)>(), stored));
}

// The powers of three that bring the trit of each weight of a group to the front of its byte.
struct Factors {
  alignas(64) std::uint32_t at[64];

  constexpr Factors() : at() {
    constexpr std::uint32_t kPowers[] = {81, 27, 9, 3, 1};
    for (int i = 0; i < 64; ++i) at[i] = kPowers[i % 16 == 15 ? i / 16 : i % 16 % 5];
  }
};
constexpr Factors kFactors;

// The byte of a block that has the trit of each weight of a group.
constexpr PartBytes sources_of(int group) {
  PartBytes sources{};
  for (int i = 0; i < 16; ++i) sources.at[i] = static_cast<std::uint8_t>(i == 15 ? 12 : 3 * group + i / 5);
  return sources;
}
constexpr PartBytes kSources[4] = {sources_of(0), sources_of(1), sources_of(2), sources_of(3)};

}  // namespace

void Q8_KV::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const Floats d = floats(header.d.load());
  for (std::uint64_t i = 0; i < count * kElements; i += kLanes)
    hn::StoreU(d * to_floats(load_signed(blocks->q + i)), kFloats, x + i);
}

void Q8_KV::encode_row(const float* x, const float* /*importance*/, Header& header, Block* blocks,
                       std::uint64_t count) {
  const float d = largest(x, count * kElements) / 127, inverse = d != 0 ? 1 / d : 0;
  header.d.store(d);
  // nearest_ints(): the codes are the low 23 bits of a sum, less 1 << 22, which no byte has.
  Words sum = words(0);
  for (std::uint64_t i = 0; i < count * kElements; i += kLanes) {
    const Words bits = as_words(floats(inverse) * hn::LoadU(kFloats, x + i) + floats(12582912.0f));
    store_bytes(bits, blocks->q + i);
    sum = sum + (bits & words(0x007fffff));
  }
  const std::uint32_t total =
      hn::GetLane(hn::SumOfLanes(kWords, sum)) - static_cast<std::uint32_t>(count * kElements << 22);
  for (int i = 0; i < 4; ++i) header.sum[i] = static_cast<std::uint8_t>(total >> (8 * i));
}

void IQ1_BN::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const Floats d = floats(header.d.load());
  for (const Block* block = blocks; block != blocks + count; ++block) {
    // 16 bytes, of which the block has 13.
    std::uint8_t last[16] = {};
    if (block + 1 == blocks + count) std::memcpy(last, block, sizeof *block);
    const Part stored = hn::LoadU(kPart, block + 1 == blocks + count ? last : block->ql);
    alignas(64) std::uint8_t bytes[kElements];  // of the trit of each weight
    GGUFMILL_UNROLL
    for (int group = 0; group < 4; ++group)
      hn::Store(hn::TableLookupBytes(stored, hn::Load(kPart, kSources[group].at)), kPart, bytes + 16 * group);
    GGUFMILL_UNROLL16
    for (int i = 0; i < 64; i += kStep, x += kLanes) {
      const Words rest = load_bytes(bytes + i) * hn::Load(kWords, kFactors.at + i) & words(255);
      const Words trit = hn::ShiftRight<7>(rest + hn::ShiftRight<1>(rest));
      hn::StoreU(d * to_floats(as_ints(trit) - ints(1)), kFloats, x);
    }
  }
}

void IQ1_BN::encode_row(const float* x, const float* /*importance*/, Header& header, Block* blocks,
                        std::uint64_t count) {
  const float d = largest(x, count * kElements);
  const Floats threshold = floats(0.5f * d);
  header.d.store(d);
  const hn::Full128<std::uint16_t> wide{};
  for (Block* block = blocks; block != blocks + count; ++block, x += kElements) {
    std::uint16_t last = 0;
    for (int group = 0; group < 4; ++group) {
      const Part part = trits_of_16(x + 16 * group, threshold);
      const std::uint32_t numbers = stored_numbers(part);
      std::memcpy(block->ql + 3 * group, &numbers, 3);
      // A trit and its byte: 0, 1, 2 and 0, 2, 3.
      constexpr std::uint16_t kPowers[4] = {1, 3, 9, 27};
      last = static_cast<std::uint16_t>(last + kPowers[group] * (((numbers >> 24) + 1) / 2));
    }
    block->extra = static_cast<std::uint8_t>(hn::GetLane(stored_number(wide, hn::Set(wide, last))));
  }
}

void IQ2_BN::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const Floats d = floats(header.d.load());
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int part = 0; part < 4; ++part)
      for (int i = 0; i < 16; i += kStep, x += kLanes) {
        const Words trit = hn::ShiftRightSame(load_bytes(block->qs + i), 2 * part) & words(3);
        hn::StoreU(d * to_floats(as_ints(trit) - ints(1)), kFloats, x);
      }
}

void IQ2_BN::encode_row(const float* x, const float* /*importance*/, Header& header, Block* blocks,
                        std::uint64_t count) {
  const float d = largest(x, count * kElements);
  const Floats threshold = floats(0.5f * d);
  header.d.store(d);
  for (Block* block = blocks; block != blocks + count; ++block, x += kElements)
    for (int i = 0; i < 16; i += kStep) {
      Words bits = trits(x + i, threshold);
      for (int part = 1; part < 4; ++part)
        bits = bits | hn::ShiftLeftSame(trits(x + i + 16 * part, threshold), 2 * part);
      store_bytes(bits, block->qs + i);
    }
}

}  // namespace ggufmill::simd
