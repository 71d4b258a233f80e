#include "plugins/ik/simd/kt_types.h"

#include "plugins/ik/kt_encoder.h"
#include "plugins/ik/simd/leaf_book.h"
#include "plugins/ik/simd/scanned_book.h"
#include "plugins/ik/simd/trellis_values.h"
#include "plugins/reference/iq_bits.h"
#include "plugins/simd/bytes.h"

namespace ggufmill::simd {
namespace {

constexpr int kStep = static_cast<int>(kLanes), kSubs = ik::trellis::kSubBlocks, kSub = ik::trellis::kSubBlock;

// The points of the groups of kCount weights of a super-block, from their indices.
template <int kCount>
class Points {
 public:
  static constexpr int kGroups = 256 / kCount;

  // The indices, with the offset of the book.
  std::uint32_t& index(int group) { return indices_[group]; }

  // Returns kLanes values from number i on.
  HWY_INLINE Ints operator[](int i) const { return trellis_values<kCount>(kWords, indices(i), i % kCount); }

 private:
  HWY_INLINE Words indices(int i) const {
    if constexpr (kStep <= kCount) return words(indices_[i / kCount]);
    constexpr int kShift = kCount == 8 ? 3 : 2;
    const Ints group = hn::ShiftRight<kShift>(hn::Iota(kInts, 0));  // of each lane
    return hn::TableLookupLanes(hn::LoadU(kWords, indices_ + i / kCount), hn::IndicesFromVec(kWords, group));
  }

  alignas(64) std::uint32_t indices_[kGroups + 16] = {};
};

// Writes a super-block. `scale` returns the scale of a sub-block.
template <int kCount, class Scale>
HWY_INLINE void write(const Points<kCount>& points, const Scale& scale, float* x) {
  for (int b = 0; b < kSubs; ++b) {
    const Floats by = floats(scale(b));
    GGUFMILL_UNROLL
    for (int i = b * kSub; i < (b + 1) * kSub; i += kStep) hn::StoreU(by * to_floats(points[i]), kFloats, x + i);
  }
}

// Books with what their searches need; built once in a process.
const ScannedBook& scanned_iq1_kt() {
  static const ScannedBook book(ik::book_of_iq1_kt());
  return book;
}
const ScannedBook& scanned_iq2_kt() {
  static const ScannedBook book(ik::book_of_iq2_kt());
  return book;
}
const ScannedBook& scanned_iq3_kt() {
  static const ScannedBook book(ik::book_of_iq3_kt());
  return book;
}
const LeafBook& leaves_of_iq4_kt(bool is_second) {
  static const LeafBook first(ik::book_of_iq4_kt(false)), second(ik::book_of_iq4_kt(true));
  return is_second ? second : first;
}

}  // namespace

void IQ1_KT::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block, x += 256) {
    Points<8> points;
    for (int b = 0; b < kSubs; ++b)
      for (int g = 0; g < 4; ++g)
        points.index(4 * b + g) =
            ik::kTrellisOffset + (block->ql[4 * b + g] | (block->qh[4 * (b % 4) + g] >> (4 * (b / 4)) & 15u) << 8 |
                                  (block->sh[b] >> (4 + g) & 1u) << 12);
    write(
        points, [&](int b) { return d * ik::kValues4.plain[block->sh[b] & 15]; }, x);
  }
}

void IQ1_KT::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  ik::trellis::encode_iq1_kt(scanned_iq1_kt(), x, importance, header, blocks, count);
}

void IQ2_KT::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block, x += 256) {
    Points<8> points;
    for (int g = 0; g < points.kGroups; ++g) points.index(g) = ik::kTrellisOffset + block->ql[g].load();
    write(
        points, [&](int b) { return d * ik::kValues4.plain[block->scales[b % 4] >> (4 * (b / 4)) & 15]; }, x);
  }
}

void IQ2_KT::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  ik::trellis::encode_iq2_kt(scanned_iq2_kt(), x, importance, header, blocks, count);
}

void IQ3_KT::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block, x += 256) {
    Points<8> points;
    for (int g = 0; g < points.kGroups; ++g) points.index(g) = ik::kTrellisOffset + block->ql[g].load();
    for (int b = 0; b < kSubs; ++b) {
      const Floats by = floats(d * static_cast<float>(block->scales[b % 4] >> (4 * (b / 4)) & 15));
      GGUFMILL_UNROLL
      for (int j = 0; j < kSub; j += kStep) {
        const Words sign = hn::ShiftLeft<31>(hn::ShiftRightSame(load_bytes(block->qh + j), b));
        const Words size = as_words(by * to_floats(hn::Abs(points[b * kSub + j])));
        hn::StoreU(as_floats(size ^ sign), kFloats, x + b * kSub + j);
      }
    }
  }
}

void IQ3_KT::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  ik::trellis::encode_iq3_kt(scanned_iq3_kt(), x, importance, header, blocks, count);
}

void IQ4_KT::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block, x += 256) {
    Points<4> points;
    for (int b = 0; b < kSubs; ++b) {
      const std::uint32_t word = reference::load_u32(block->shb + 4 * b);
      const std::uint32_t offset = word & 1 ? ik::kSecondTrellisOffset : ik::kTrellisOffset;
      for (int g = 0; g < 8; ++g) {
        const int n = 8 * b + g;
        points.index(n) = offset + (block->ql[n] | (block->qh[n % 32] >> (4 * (n / 32)) & 15u) << 8 |
                                    (word >> (8 + 3 * g) & 7) << 12);
      }
    }
    write(
        points, [&](int b) { return d * static_cast<float>((block->shb[4 * b] >> 1) - 64); }, x);
  }
}

void IQ4_KT::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  ik::trellis::encode_iq4_kt(leaves_of_iq4_kt(false), leaves_of_iq4_kt(true), x, importance, header, blocks, count);
}

}  // namespace ggufmill::simd
