#pragma once
// A code book in the form needed by the search in lanes (plugins/reference/iq_lattice.h): points as words, with the
// neighbours of a point stored consecutively, in full vectors.

#include <algorithm>

#include "plugins/reference/iq_lattice.h"
#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// Converts points to words. Nibble i of a word is level i. With up to four levels, an offset is added, which makes the
// nibble the position of the level in a vector of 16 that contains 4 consecutive levels for each of 4 coordinates; its
// lower 3 bits are the position in a vector of 8.
template <class Space>
struct Points {
  static constexpr int kPadded = Space::kLevels <= 4 ? 4 : 8;  // number of levels, padded to a power of two
  // True if a vector has room for the levels of two points.
  static constexpr bool kPairs = kPadded == 8 && kLanes == 16;

  static constexpr std::uint32_t offset(int i) {
    return kPadded == 4 ? static_cast<std::uint32_t>(i % 4 * kPadded) : 0;
  }

  // The word with all levels 0.
  static constexpr std::uint32_t kOrigin = [] {
    std::uint32_t word = 0;
    for (int i = 0; i < Space::kDims; ++i) word |= offset(i) << (4 * i);
    return word;
  }();

  static std::uint32_t word_of(const typename Space::Point& point) {
    std::uint32_t word = kOrigin;
    for (int i = 0; i < Space::kDims; ++i) word |= std::uint32_t{point[static_cast<std::size_t>(i)]} << (4 * i);
    return word;
  }
};

// Table entry of a point: its index in the book, or its list of neighbours.
class LatticeEntry {
 public:
  static constexpr std::uint32_t kVectors = 0xff;  // mask of the number of neighbour vectors; 0 if in the book

  static constexpr std::uint32_t in_book(std::uint32_t index) { return index << 8; }
  static constexpr std::uint32_t beside(std::uint32_t first, std::uint32_t vectors) { return first << 8 | vectors; }

  explicit LatticeEntry(std::uint32_t word) : word_(word) {}
  std::uint32_t first_vector() const { return word_ >> 8; }
  std::uint32_t vectors() const { return word_ & kVectors; }

 private:
  std::uint32_t word_;
};

template <class Space>
struct LatticeView {
  const std::uint32_t* entries;  // indexed by code
  const std::uint32_t* words;    // words of all neighbours; the last vector of a list is padded with its last word
};

// Resides in static storage, like reference::Lattice. `Neighbours` is the total number of entries in all lists.
template <class Space, std::uint32_t Neighbours>
class LatticeTable {
 public:
  explicit LatticeTable(const reference::Lattice<Space>& lattice) {
    std::uint32_t vectors = 0;
    for (int code = 0; code < Space::kCodes; ++code) {
      if (const int index = lattice.index[code]; index >= 0) {
        entries_[code] = LatticeEntry::in_book(static_cast<std::uint32_t>(index));
        continue;
      }
      const std::uint32_t end = lattice.first[code + 1], before = vectors;
      for (std::uint32_t n = lattice.first[code]; n < end; n += kStep, ++vectors)
        for (std::uint32_t lane = 0; lane < kStep; ++lane)
          words_[vectors * kStep + lane] =
              Points<Space>::word_of(lattice.book[lattice.neighbours[std::min(n + lane, end - 1)]]);
      entries_[code] = LatticeEntry::beside(before, vectors - before);
    }
  }

  LatticeView<Space> view() const { return {entries_, words_}; }

 private:
  static constexpr auto kStep = static_cast<std::uint32_t>(kLanes);

  std::uint32_t entries_[Space::kCodes];
  alignas(64) std::uint32_t words_[Neighbours + Space::kCodes * (kStep - 1)];
};

}  // namespace ggufmill::simd
