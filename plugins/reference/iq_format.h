#pragma once
// What IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS and IQ3_S have in common: super-blocks of 256 weights in groups of 8 (IQ2) or 4
// (IQ3), each group an index into a code book of magnitudes; beside it the signs, and a 4-bit scale for each sub-block
// of 16 or 32 weights. Where seven bits of signs tell eight, an even number of the eight is negative.
//
// A format names its type and book, lays out the fields of its block (get_ and put_: group is an index of a group,
// eight of eight weights with signs, sub of a sub-block) and gives its figures:
//   kSubBlock      weights with one scale
//   kEvenSigns     signs are stored in seven bits
//   kRule          of the search for a sub-block's scale
//   kLeast         a sub-block whose largest magnitude is below this becomes zeros
//   kMeanFactor    of the super-block's mean square in a weight
//   plain_weight   of a value when there is no importance; absent where importance is needed
//   kFudge         of the super-block's scale, when it is stored
//   kFitsGuess     the first guess of a scale is a fit without the book, not the largest magnitude at the top level
//   close_gaps     what an encoder does with sub-blocks of zeros; in one format only
//   kClearsFlat    a super-block without scale is all zero bytes, even where levels were found

#include "plugins/reference/codec.h"
#include "plugins/reference/floats.h"
#include "plugins/reference/iq_bits.h"
#include "plugins/reference/iq_scale_search.h"

namespace ggufmill::reference {

// The 4-bit scales of three of the types: the even sub-block's in the low nibble.
template <class Block>
struct NibbleScales {
  static unsigned get_scale(const Block& block, int sub) { return block.scales[sub / 2] >> (sub % 2 * 4) & 15u; }
  static void put_scale(Block& block, int sub, unsigned scale) {
    put_u8(block.scales[sub / 2], scale << (sub % 2 * 4));
  }
};

}  // namespace ggufmill::reference
