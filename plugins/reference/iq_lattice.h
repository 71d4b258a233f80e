#pragma once
// A code book seen from every point of its space: which index a point has, or which book points are near it.
//
// The neighbours of a point that is not in the book are the book's points on the `rings` nearest spheres around it (a
// sphere: one distance that occurs), nearest sphere first and by index within a sphere. The number of rings and this
// order decide bytes: the encoders take the first of equally good neighbours. (ggml-quants.c: iq2xs_init_impl and
// iq3xs_init_impl sort by distance, then index, and keep the `nwant` least distances.)

#include <cstdint>

#include "plugins/reference/codebooks.h"

namespace ggufmill::reference {

template <class Space>
struct Lattice {
  using SpaceType = Space;
  const typename Space::Point* book;  // index -> levels
  const std::int16_t* index;          // code -> index in the book, or -1
  const std::uint32_t* first;         // code -> its first neighbour; kCodes + 1 entries
  const std::uint16_t* neighbours;    // indices; those of `code` are [first[code], first[code + 1])
};

// How many entries the lists of each book have: facts of the books.
inline constexpr std::uint32_t kIq1Neighbours = 327721;
inline constexpr std::uint32_t kIq2XxsNeighbours = 113157;
inline constexpr std::uint32_t kIq2XsNeighbours = 181721;
inline constexpr std::uint32_t kIq2SNeighbours = 44716;
inline constexpr std::uint32_t kIq3XxsNeighbours = 18985;
inline constexpr std::uint32_t kIq3SNeighbours = 24733;

// Made at the first call, which takes some milliseconds; thread-safe, without allocation, valid for ever. The storage
// is static because the ABI lets no allocation outlive a call and a kernel must not make the lists anew for each call.
const Lattice<Ternary>& iq1_lattice();
const Lattice<Ternary>& iq2_xxs_lattice();
const Lattice<Ternary>& iq2_xs_lattice();
const Lattice<Ternary>& iq2_s_lattice();
const Lattice<Octal>& iq3_xxs_lattice();
const Lattice<Octal>& iq3_s_lattice();

}  // namespace ggufmill::reference
