#pragma once
// Decoder of the IQ2 and IQ3 types, with the same results as reference::LatticeCodec. Points (lattice_points.h), signs
// and scales are computed for an entire super-block at a time.

#include "plugins/reference/iq_codec.h"
#include "plugins/simd/block_fields.h"
#include "plugins/simd/flip_signs.h"
#include "plugins/simd/lattice_points.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {

// The signs of a super-block of the IQ2 and IQ3 types: one byte per eight weights, or seven bits if the number of
// negative weights is even.
template <bool kEven>
class LatticeSigns {
 public:
  // Sets the fields from number i on, given one field per short.
  HWY_INLINE void set(int i, Shorts fields) {
    if constexpr (kEven) {
      Shorts parity = fields ^ hn::ShiftRight<4>(fields);
      parity = parity ^ hn::ShiftRight<2>(parity);
      parity = parity ^ hn::ShiftRight<1>(parity);
      fields = fields | hn::ShiftLeft<7>(parity & shorts(1));
    }
    const hn::Rebind<std::uint8_t, decltype(kShorts)> bytes{};
    hn::StoreU(hn::TruncateTo(bytes, fields), bytes, bits_ + i);
  }

  // Applies the signs to the magnitudes of elements from i on.
  HWY_INLINE Floats apply(Floats magnitudes, int i) const {
    std::uint32_t bits;
    std::memcpy(&bits, bits_ + i / 32 * 4, sizeof bits);
    return flip_signs(magnitudes, bits, i);
  }

 private:
  alignas(4) std::uint8_t bits_[32];
};

// Unpacked fields of a super-block.
template <class Format>
struct LatticeFields {
  using Book = typename LatticePoints<Format>::Book;
  LatticePoints<Format> points;
  LatticeSigns<Format::kEvenSigns> signs;
  SubFloats<256 / Format::kSubBlock> scales;
};

// Decodes `count` blocks; set_fields(block, book, fields) unpacks a block into LatticeFields.
template <class Format, class SetFields>
void decode_lattice(const typename Format::Block* blocks, std::uint64_t count, float* x, const SetFields& set_fields) {
  using Block = typename Format::Block;
  using Fields = LatticeFields<Format>;
  const auto& book = Fields::Book::get();
  decode_scaled<Fields, 256>(
      blocks, count, x, [&](const Block& block, Fields& fields) { set_fields(block, book, fields); },
      [&](const Block&, const Fields& fields, float* to) {
        fields.points.each(book, fields.scales,
                           [&](int i, Floats values) { hn::StoreU(fields.signs.apply(values, i), kFloats, to + i); });
      });
}

// Unpacks words of four 7-bit sign fields with a scale on top. words_at(i) returns the words from number i on, in 64
// bits each.
template <class WordsAt, class Fields>
HWY_INLINE void set_packed_signs(const WordsAt& words_at, Fields& fields) {
  const hn::RepartitionToWide<decltype(kWords)> wide{};
  constexpr int kStep = static_cast<int>(kLanes) / 2;
  for (int i = 0; i < 8; i += kStep) {
    const auto word = words_at(i);
    const auto field = [&](auto shifted, int k) {  // shifted from bit 7 * k to bit 16 * k
      return shifted & hn::Set(wide, std::uint64_t{127} << (16 * k));
    };
    const auto lower = field(word, 0) | field(hn::ShiftLeft<9>(word), 1);
    const auto upper = field(hn::ShiftLeft<18>(word), 2) | field(hn::ShiftLeft<27>(word), 3);
    fields.signs.set(4 * i, hn::BitCast(kShorts, lower | upper));
  }
}

}  // namespace ggufmill::simd
