#pragma once
// The decoder of the IQ2 and IQ3 types, as reference::LatticeCodec's: magnitudes a vector at a time.

#include <cstring>

#include "plugins/reference/iq_codec.h"
#include "plugins/simd/bytes.h"

namespace ggufmill::simd {

// The magnitudes of the points of a format's book, made at the first call.
template <class Format>
class Magnitudes {
 public:
  static constexpr std::size_t kDims =
      std::tuple_size_v<typename std::remove_cvref_t<decltype(Format::kBook)>::value_type>;

  static const Magnitudes& get() {
    static const Magnitudes magnitudes;
    return magnitudes;
  }
  void copy_point(int index, std::uint8_t* bytes) const { std::memcpy(bytes, bytes_[index], kDims); }

 private:
  Magnitudes() {
    for (std::size_t index = 0; index < Format::kBook.size(); ++index)
      for (std::size_t i = 0; i < kDims; ++i) bytes_[index][i] = Format::kMagnitudes[Format::kBook[index][i]];
  }

  std::uint8_t bytes_[std::tuple_size_v<std::remove_cvref_t<decltype(Format::kBook)>>][kDims];
};

template <class Format>
unsigned signs_of(const typename Format::Block& block, int eight) {
  const unsigned signs = Format::get_signs(block, eight);
  return Format::kEvenSigns ? reference::expand_even_signs(signs) : signs;
}

template <class Format>
void decode_lattice(const typename Format::Block& block, float* x) {
  constexpr int kGroup = static_cast<int>(Magnitudes<Format>::kDims);
  const Magnitudes<Format>& magnitudes = Magnitudes<Format>::get();
  std::uint8_t bytes[256];
  for (int group = 0; group < 256 / kGroup; ++group)
    magnitudes.copy_point(Format::get_index(block, group), bytes + group * kGroup);
  const float d = block.d.load();
  for (int at = 0; at < 256; at += 16) {
    const Floats scale = floats(Format::scale(d, Format::get_scale(block, at / Format::kSubBlock)));
    const Words signs = words(signs_of<Format>(block, at / 8) | signs_of<Format>(block, at / 8 + 1) << 8);
    for (int i = 0; i < 16; i += static_cast<int>(kLanes)) {
      const Words sign = hn::ShiftLeft<31>(signs >> hn::Iota(kWords, static_cast<std::uint32_t>(i)));
      const Words magnitude = as_words(scale * to_floats(as_ints(load_bytes(bytes + at + i))));
      hn::StoreU(as_floats(magnitude ^ sign), kFloats, x + at + i);
    }
  }
}

}  // namespace ggufmill::simd
