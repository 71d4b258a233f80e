#pragma once
// A code book as the search in lanes wants it (plugins/reference/iq_lattice.h): points as words, the neighbours of a
// point one after the other, in whole vectors.

#include <algorithm>

#include "plugins/reference/iq_lattice.h"
#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

// Nibble i of a word is level i; with up to four levels plus an offset that makes the nibble the level's place in a
// vector of 16 in which 4 coordinates have their 4 levels one after the other, and its lower 3 bits the place in a
// vector of 8.
template <class Space>
struct Points {
  static constexpr int kPadded = Space::kLevels <= 4 ? 4 : 8;  // levels with room for a power of two
  // Whether a vector has room for the levels of two points.
  static constexpr bool kPairs = kPadded == 8 && kLanes == 16;

  static constexpr std::uint32_t offset(int i) {
    return kPadded == 4 ? static_cast<std::uint32_t>(i % 4 * kPadded) : 0;
  }

  // The word of levels that are all 0.
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

// What is known of the point of a code: its index in the book, or its neighbours.
class LatticeEntry {
 public:
  static constexpr std::uint32_t kVectors = 0xff;  // how many vectors of neighbours; none: the point is in the book

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
  const std::uint32_t* entries;  // by code
  const std::uint32_t* words;    // of all neighbours; the last vector of a list is filled up with its last one
};

// In static storage, as reference::Lattice; `Neighbours` is how many entries all lists have together.
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
