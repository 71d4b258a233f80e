#pragma once
// Maps every point of a space to a code book: to the index of the point in the book, or to the nearest book points.
//
// The neighbours of a point that is not in the book are the book points on the `rings` nearest spheres around it, where
// a sphere is a distance that occurs. They are sorted by sphere, nearest first, and by index within a sphere. The
// number of rings and this order affect the output bytes, because the encoders take the first of equally good
// neighbours. (In ggml-quants.c, iq2xs_init_impl and iq3xs_init_impl sort by distance, then index, and keep the `nwant`
// least distances.)

#include <cstdint>

#include "plugins/reference/codebooks.h"

namespace ggufmill::reference {

template <class Space>
struct Lattice {
  using SpaceType = Space;
  const typename Space::Point* book;  // index -> levels
  const std::int16_t* index;          // code -> index in the book, or -1
  const std::uint32_t* first;         // code -> offset of its first neighbour; kCodes + 1 entries
  const std::uint16_t* neighbours;    // indices; those for `code` are [first[code], first[code + 1])
};

// Total number of entries in the lists of each book; these are properties of the books.
inline constexpr std::uint32_t kIq1Neighbours = 327721;
inline constexpr std::uint32_t kIq2XxsNeighbours = 113157;
inline constexpr std::uint32_t kIq2XsNeighbours = 181721;
inline constexpr std::uint32_t kIq2SNeighbours = 44716;
inline constexpr std::uint32_t kIq3XxsNeighbours = 18985;
inline constexpr std::uint32_t kIq3SNeighbours = 24733;

// The lattices are built on the first call, which takes a few milliseconds. The functions are thread-safe and do not
// allocate; the references are valid until the process ends. The storage is static because the ABI does not allow an
// allocation to outlive a call, and a kernel must not rebuild the lists for each call.
const Lattice<Ternary>& iq1_lattice();
const Lattice<Ternary>& iq2_xxs_lattice();
const Lattice<Ternary>& iq2_xs_lattice();
const Lattice<Ternary>& iq2_s_lattice();
const Lattice<Octal>& iq3_xxs_lattice();
const Lattice<Octal>& iq3_s_lattice();

}  // namespace ggufmill::reference
