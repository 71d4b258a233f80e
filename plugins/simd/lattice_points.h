#pragma once
// Converts the points of a super-block of the IQ2 and IQ3 types from indices in the code book of a format to magnitudes
// of weights. Uses a table of magnitudes in memory or, with 16 lanes, a table of levels in registers, with one short
// per point.
//
// A points class has set(book, i, indices), which sets the points from number i on, and each(book, scales, take), which
// calls take(i, values) for all vectors of weights in order. The values are scale * magnitude.

#include <type_traits>

#include "plugins/simd/block_fields.h"
#include "plugins/simd/pick.h"

namespace ggufmill::simd {

template <class Format>
using BookOf = std::remove_cvref_t<decltype(Format::kBook)>;
template <class Format>
inline constexpr int kBookSize = static_cast<int>(std::tuple_size_v<BookOf<Format>>);
template <class Format>
inline constexpr int kBookDims = static_cast<int>(std::tuple_size_v<typename BookOf<Format>::value_type>);

// Magnitudes of the points of a book, built on the first call.
template <class Format>
class Magnitudes {
 public:
  static const Magnitudes& get() {
    static const Magnitudes magnitudes;
    return magnitudes;
  }

  const float* values() const { return values_; }

 private:
  Magnitudes() {
    float* value = values_;
    for (const auto& point : Format::kBook)
      for (const std::uint8_t level : point) *value++ = Format::kMagnitudes[level];
  }

  alignas(64) float values_[kBookSize<Format> * kBookDims<Format>];
};

template <class Format>
class TabledPoints {
 public:
  using Book = Magnitudes<Format>;

  void set(const Book&, int i, Shorts indices) { hn::StoreU(indices * shorts(kDims), kShorts, places_ + i); }

  template <class Scales, class Take>
  HWY_INLINE void each(const Book& book, const Scales& scales, const Take& take) const {
    GGUFMILL_UNROLL16
    for (int first = 0; first < 256; first += 4 * kDims) {
      const FourPlaces places(places_ + first / kDims);
      GGUFMILL_UNROLL
      for (int i = 0; i < 4 * kDims; i += static_cast<int>(kLanes)) {
        const Floats scale = scales[(first + i) / Format::kSubBlock];
        take(first + i, scale * load_pieces<kDims>(kFloats, book.values(), places, i));
      }
    }
  }

 private:
  static constexpr int kDims = kBookDims<Format>;

  std::uint16_t places_[256 / kDims];  // positions in the table
};

#if HWY_TARGET == HWY_AVX3

// The points of a book, with one short per point; built on the first call. Level i starts at bit 2 * i or 4 * i.
template <class Format>
class BookCodes {
 public:
  static constexpr int kBits = 16 / kBookDims<Format>;

  static const BookCodes& get() {
    static const BookCodes codes;
    return codes;
  }

  // Returns the codes of the indices.
  Shorts find(Shorts index) const { return find<kBookSize<Format>>(values_, index); }

 private:
  BookCodes() {
    for (std::size_t index = 0; index < kBookSize<Format>; ++index) {
      unsigned code = 0;
      for (std::size_t i = 0; i < kBookDims<Format>; ++i) code |= unsigned{Format::kBook[index][i]} << (kBits * i);
      values_[index] = static_cast<std::uint16_t>(code);
    }
  }

  // Looks up `index` in a list of kCount codes; higher bits of the index are ignored.
  template <int kCount>
  static Shorts find(const std::uint16_t* codes, Shorts index) {
    if constexpr (kCount == 64) {
      const Shorts lower = hn::Load(kShorts, codes), upper = hn::Load(kShorts, codes + 32);
      return Shorts{_mm512_permutex2var_epi16(lower.raw, index.raw, upper.raw)};
    } else {
      const Shorts lower = find<kCount / 2>(codes, index), upper = find<kCount / 2>(codes + kCount / 2, index);
      return hn::IfThenElse(hn::TestBit(index, shorts(kCount / 2)), upper, lower);
    }
  }

  alignas(64) std::uint16_t values_[kBookSize<Format>];
};

// Magnitudes of the levels, repeated.
template <class Format>
struct LevelMagnitudes {
  alignas(64) float at[16] = {};

  constexpr LevelMagnitudes() {
    constexpr int kLevels = BookCodes<Format>::kBits == 2 ? 3 : 8, kPadded = kLevels == 3 ? 4 : 8;
    for (int i = 0; i < 16; ++i)
      if (i % kPadded < kLevels) at[i] = Format::kMagnitudes[i % kPadded];
  }
};

template <class Format>
class CodedPoints {
 public:
  using Book = BookCodes<Format>;

  void set(const Book& book, int i, Shorts indices) { hn::StoreU(book.find(indices), kShorts, codes_ + i); }

  template <class Scales, class Take>
  HWY_INLINE void each(const Book&, const Scales& scales, const Take& take) const {
    static constexpr LevelMagnitudes<Format> kMagnitudes;
    GGUFMILL_UNROLL16
    for (int first = 0; first < 256; first += Format::kSubBlock) {
      const Floats values = scales[first / Format::kSubBlock] * hn::Load(kFloats, kMagnitudes.at);
      GGUFMILL_UNROLL
      for (int i = first; i < first + Format::kSubBlock; i += 16) take(i, pick(values, levels(i)));
    }
  }

 private:
  // Returns the levels from element i on, in the lowest bits.
  Words levels(int i) const {
    constexpr int kDims = kBookDims<Format>;
    const Words lanes = hn::Iota(kWords, 0);
    if constexpr (kDims == 8) {
      std::uint32_t two;
      std::memcpy(&two, codes_ + i / kDims, sizeof two);
      return words(two) >> (lanes + lanes);
    } else {
      alignas(64) static constexpr std::uint8_t kBytes[64] = {
          0, 1, 0x80, 0x80, 0, 1, 0x80, 0x80, 0, 1, 0x80, 0x80, 0, 1, 0x80, 0x80,  // a code per 128-bit part
          2, 3, 0x80, 0x80, 2, 3, 0x80, 0x80, 2, 3, 0x80, 0x80, 2, 3, 0x80, 0x80, 4, 5, 0x80, 0x80, 4, 5, 0x80, 0x80,
          4, 5, 0x80, 0x80, 4, 5, 0x80, 0x80, 6, 7, 0x80, 0x80, 6, 7, 0x80, 0x80, 6, 7, 0x80, 0x80, 6, 7, 0x80, 0x80};
      const hn::RepartitionToWide<decltype(kWords)> wide{};
      std::uint64_t four;
      std::memcpy(&four, codes_ + i / kDims, sizeof four);
      const auto codes = hn::BitCast(kWideBytes, hn::Set(wide, four));
      const auto own = hn::TableLookupBytesOr0(codes, hn::Load(kWideBytes, kBytes));
      return hn::BitCast(kWords, own) >> hn::ShiftLeft<2>(lanes & words(3));
    }
  }

  std::uint16_t codes_[256 / kBookDims<Format>];
};

// For larger books, looking up codes takes longer than loading magnitudes.
template <class Format>
using LatticePoints = std::conditional_t<(kBookSize<Format> > 512), TabledPoints<Format>, CodedPoints<Format>>;

#else

template <class Format>
using LatticePoints = TabledPoints<Format>;

#endif

}  // namespace ggufmill::simd
