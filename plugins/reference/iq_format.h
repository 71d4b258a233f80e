#pragma once
// Common parts of IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS and IQ3_S: super-blocks of 256 weights in groups of 8 (IQ2) or 4
// (IQ3). Each group is an index into a code book of magnitudes. Signs are stored separately, as is a 4-bit scale for
// each sub-block of 16 or 32 weights. If eight signs are stored in seven bits, an even number of the eight weights is
// negative.
//
// A format names its type and code book, defines the fields of its block, and sets the parameters below. The fields are
// accessed with get_ and put_ functions; `group` is the index of a group, `eight` that of eight weights with signs, and
// `sub` that of a sub-block.
//   kSubBlock      number of weights that share a scale
//   kEvenSigns     signs are stored in seven bits
//   kRule          parameters of the search for a sub-block's scale
//   kMin         a sub-block whose largest magnitude is below this becomes zero
//   kMeanFactor    factor of the super-block's mean square in the formula of a weight
//   plain_weight   weight of a value if there is no importance; missing if the type needs importance
//   kFudge         factor of the super-block's scale, applied when the scale is stored
//   kFitsGuess     the first guess of a scale is a fit without the code book, instead of the scale that maps the
//                  largest magnitude to the top level
//   close_gaps     post-processes sub-blocks of zeros; in one format only
//   kClearsFlat    a super-block with scale 0 is stored as all zero bytes, even if levels were found

#include "plugins/reference/codec.h"
#include "plugins/reference/floats.h"
#include "plugins/reference/iq_bits.h"
#include "plugins/reference/iq_scale_search.h"

namespace ggufmill::reference {

// 4-bit scales as stored by three of the types: even sub-blocks are in the low nibble.
template <class Block>
struct NibbleScales {
  static unsigned get_scale(const Block& block, int sub) { return block.scales[sub / 2] >> (sub % 2 * 4) & 15u; }
  static void put_scale(Block& block, int sub, unsigned scale) {
    put_u8(block.scales[sub / 2], scale << (sub % 2 * 4));
  }
};

}  // namespace ggufmill::reference
