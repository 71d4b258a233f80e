#pragma once
// The decoder of the IQ2 and IQ3 types, as reference::LatticeCodec's. The points' magnitudes come from a table; where
// they are there, the signs and the scales are worked out for a whole super-block at a time.

#include <type_traits>

#include "plugins/reference/iq_codec.h"
#include "plugins/simd/lattice_signs.h"
#include "plugins/simd/stored_half.h"

namespace ggufmill::simd {

// The magnitudes of the points of a format's book, made at the first call.
template <class Format>
class Magnitudes {
 public:
  using Book = std::remove_cvref_t<decltype(Format::kBook)>;
  static constexpr std::size_t kDims = std::tuple_size_v<typename Book::value_type>;

  static const float* get() {
    static const Magnitudes magnitudes;
    return magnitudes.values_;
  }

 private:
  Magnitudes() {
    float* value = values_;
    for (const auto& point : Format::kBook)
      for (const std::uint8_t level : point) *value++ = Format::kMagnitudes[level];
  }

  alignas(64) float values_[std::tuple_size_v<Book> * kDims];
};

// What is worked out of a super-block: where in their table the points' magnitudes are, the signs (lattice_signs.h) and
// the scales.
template <class Format>
struct LatticeFields {
  static constexpr int kDims = static_cast<int>(Magnitudes<Format>::kDims);
  static constexpr int kSubBlocks = 256 / Format::kSubBlock;
  std::uint16_t points[256 / kDims];
  LatticeSigns<Format::kEvenSigns> signs;
  SubFloats<kSubBlocks> scales;
};

template <class Format>
HWY_INLINE void decode_fields(const LatticeFields<Format>& fields, const float* magnitudes, float* x) {
  constexpr int kDims = LatticeFields<Format>::kDims;
  GGUFMILL_UNROLL16
  for (int first = 0; first < 256; first += 4 * kDims) {
    const FourPlaces places(fields.points + first / kDims);
    GGUFMILL_UNROLL
    for (int i = 0; i < 4 * kDims; i += static_cast<int>(kLanes)) {
      const Floats magnitude = load_pieces<kDims>(kFloats, magnitudes, places, i);
      const Floats value = fields.scales[(first + i) / Format::kSubBlock] * magnitude;
      hn::StoreU(fields.signs.apply(value, first + i), kFloats, x + first + i);
    }
  }
}

// set_fields(block, fields): see LatticeFields.
template <class Format, class SetFields>
void decode_lattice(const typename Format::Block* blocks, std::uint64_t count, float* x, const SetFields& set_fields) {
  using Fields = LatticeFields<Format>;
  const float* magnitudes = Magnitudes<Format>::get();
  decode_scaled<Fields, 256>(blocks, count, x, set_fields,
                             [&](const typename Format::Block&, const Fields& fields, float* to) {
                               decode_fields<Format>(fields, magnitudes, to);
                             });
}

// Words of four sign fields of 7 bits each, under a scale; words_at(i) gives those from word i on in 64 bits each.
template <class WordsAt, class Fields>
HWY_INLINE void set_packed_signs(const WordsAt& words_at, Fields& fields) {
  constexpr hn::RepartitionToWide<decltype(kWords)> wide{};
  constexpr int kStep = static_cast<int>(kLanes) / 2;
  for (int i = 0; i < 8; i += kStep) {
    const auto word = words_at(i);
    const auto field = [&](auto shifted, int k) {  // from bit 7 * k to bit 16 * k
      return shifted & hn::Set(wide, std::uint64_t{127} << (16 * k));
    };
    const auto lower = field(word, 0) | field(hn::ShiftLeft<9>(word), 1);
    const auto upper = field(hn::ShiftLeft<18>(word), 2) | field(hn::ShiftLeft<27>(word), 3);
    fields.signs.set(4 * i, hn::BitCast(kShorts, lower | upper));
  }
}

}  // namespace ggufmill::simd
