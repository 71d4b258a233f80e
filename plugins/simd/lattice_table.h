#pragma once
// A code book in the form needed by the search in lanes (plugins/reference/iq_lattice.h): points as words, with the
// neighbours of a point stored consecutively, in full vectors or pieces of a few.

#include <algorithm>
#include <bit>

#include "plugins/reference/iq_lattice.h"
#include "plugins/simd/pick.h"

namespace ggufmill::simd {

// Converts points to words. Nibble i of a word is level i. With up to four levels, an offset is added, which makes the
// nibble the position of the level in a vector of 16 that contains 4 consecutive levels for each of 4 coordinates; its
// lower 3 bits are the position in a vector of 8.
template <class Space>
struct Points {
  static constexpr int kPadded = Space::kLevels <= 4 ? 4 : 8;  // number of levels, padded to a power of two
  // True if the search takes one point per lane (lattice_batch.h), false if it takes one point at a time, with the
  // neighbours in the lanes. The latter needs lookups of levels in vectors, and is faster if there are many neighbours.
  static constexpr bool kBatches = kPadded == 8 || !GGUFMILL_SIMD_PICKS;
  // Number of neighbours that are compared at a time. Lists are padded to a multiple of it.
  static constexpr std::size_t kChunk = kBatches ? 4 : kLanes;

  // True if the table has a second entry for each point, at code + kCodes, for values that are close to a tie. Every
  // few tries of the IQ3 types, the greatest magnitude is.
  static constexpr bool kTies = Space::kLevels == 8;
  static constexpr int kEntries = kTies ? 2 * Space::kCodes : Space::kCodes;

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

// Table entry of a point: its index in the book, its list of neighbours, or the steps to them.
class LatticeEntry {
 public:
  static constexpr std::uint32_t kChunks = 0xff;  // mask of the number of neighbour chunks; 0 if in the book
  static constexpr std::uint32_t kSteps = 0xff;   // in place of this number if there are steps instead

  static constexpr std::uint32_t in_book(std::uint32_t index) { return index << 8; }
  static constexpr std::uint32_t beside(std::uint32_t first, std::uint32_t chunks) { return first << 8 | chunks; }
  // The bit of a step: 2 * i is one level down in coordinate i, 2 * i + 1 is one level up.
  static constexpr std::uint32_t step(int number) { return 1u << (8 + number); }

  explicit LatticeEntry(std::uint32_t word) : word_(word) {}
  std::uint32_t first_chunk() const { return word_ >> 8; }
  std::uint32_t chunks() const { return word_ & kChunks; }

 private:
  std::uint32_t word_;
};

template <class Space>
struct LatticeView {
  const std::uint32_t* entries;  // indexed by code, and by code + kCodes if Points<Space>::kTies
  const std::uint32_t* words;    // words of all neighbours; the last chunk of a list is padded with its last word
  const std::uint32_t* points;   // words of all points, indexed like the entries
};

// Where a point is relative to another one: for each coordinate, as many bits as levels lie between them.
template <class Space>
std::uint64_t offset_bits(const typename Space::Point& from, const typename Space::Point& to) {
  constexpr int kSteps = Space::kLevels - 1;
  static_assert(Space::kDims * 2 * kSteps <= 64);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < Space::kDims; ++i) {
    const int up = std::max(to[i] - from[i], 0), down = std::max(from[i] - to[i], 0);
    bits = bits << (2 * kSteps) | ((std::uint64_t{1} << up) - 1) << kSteps | ((std::uint64_t{1} << down) - 1);
  }
  return bits;
}

// Neighbours to keep in a table.
enum class Keep {
  kAll,
  // Only those that can be nearest to values which round to the point, and not close to a tie. In this case, a level of
  // the point is nearer to its value than any other level is, and a level between it and a third one is nearer than the
  // third one is. A neighbour q can be left out if another one, p, has levels at or between those of the point and of
  // q: no term of the sum of p is above that of q, so neither is the sum, as each rounding is monotonic. p precedes q
  // in the list, because it is nearer to the point, so it also wins a tie.
  kNearestToRounded,
  // The same, and where all of these are one step from the point, steps instead of a list (lattice_steps.h).
  kSteps
};

// Resides in static storage, like reference::Lattice. `Neighbours` is the total number of entries in all lists.
template <class Space, std::uint32_t Neighbours, Keep keep>
class LatticeTable {
 public:
  explicit LatticeTable(const reference::Lattice<Space>& lattice) {
    std::uint32_t chunks = 0;
    for (int entry = 0; entry < kEntries; ++entry) {
      const int code = entry % Space::kCodes;
      const Keep kept_here = entry < Space::kCodes ? keep : Keep::kAll;
      points_[entry] = Points<Space>::word_of(Space::point_of(code));
      if (const int index = lattice.index[code]; index >= 0) {
        entries_[entry] = LatticeEntry::in_book(static_cast<std::uint32_t>(index));
        continue;
      }
      const std::uint32_t before = chunks;
      std::uint32_t count = 0;
      std::uint64_t kept[kMax];
      for (std::uint32_t n = lattice.first[code]; n < lattice.first[code + 1]; ++n) {
        const auto& point = lattice.book[lattice.neighbours[n]];
        const std::uint64_t bits = offset_bits<Space>(Space::point_of(code), point);
        const auto is_nearer = [&](std::uint64_t other) { return (other & ~bits) == 0; };
        if (kept_here != Keep::kAll && std::any_of(kept, kept + count, is_nearer)) continue;
        kept[count] = bits;
        words_[chunks * kStep + count++] = Points<Space>::word_of(point);
      }
      if (kept_here == Keep::kSteps && std::all_of(kept, kept + count, std::has_single_bit<std::uint64_t>)) {
        entries_[entry] = LatticeEntry::kSteps;
        for (std::uint32_t n = 0; n < count; ++n) entries_[entry] |= step_of(kept[n]);
        continue;
      }
      for (; count % kStep != 0; ++count) words_[chunks * kStep + count] = words_[chunks * kStep + count - 1];
      chunks += count / kStep;
      entries_[entry] = LatticeEntry::beside(before, chunks - before);
    }
  }

  LatticeView<Space> view() const { return {entries_, words_, points_}; }

 private:
  // Returns the bit in an entry of a step with this offset.
  static std::uint32_t step_of(std::uint64_t offset) {
    constexpr int kOffsetBits = 2 * (Space::kLevels - 1);
    const int bit = std::countr_zero(offset);
    return LatticeEntry::step(2 * (Space::kDims - 1 - bit / kOffsetBits) + (bit % kOffsetBits >= kOffsetBits / 2));
  }

  static constexpr auto kStep = static_cast<std::uint32_t>(Points<Space>::kChunk);
  static constexpr std::uint32_t kMax = LatticeEntry::kChunks * kStep;  // neighbours of one point

  static constexpr int kEntries = Points<Space>::kEntries;
  std::uint32_t entries_[kEntries], points_[kEntries];
  // Batches read past shorter lists.
  static constexpr std::uint32_t kPast = Points<Space>::kBatches ? kMax : 0;

  alignas(64) std::uint32_t words_[kEntries / Space::kCodes * Neighbours + kEntries * (kStep - 1) + kPast];
};

}  // namespace ggufmill::simd
