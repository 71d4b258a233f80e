#pragma once
// Recognises rows whose values are those of a quantized type, because the weights were trained or rounded so, and
// encodes them without further loss. No encoder that minimizes an error finds all of them: the greatest value of a
// block can have any level, and only the exact scale reproduces the others.
//
// A block is recognised by trying every level for its extreme values. The scale that this gives must be exact as a half
// and reproduce every value as decoding does. Where a type has only a few levels, values off the lattice by up to two
// roundings to BF16 are recognised as well; their scale is that of least squared error. All arithmetic is exact or in
// element order, without fused operations.

#include <array>
#include <cstddef>

#include "plugins/abi/ggufmill_lattice.h"

namespace ggufmill::reference {

inline constexpr std::size_t kLatticeCount = 8;
extern const std::array<ggufmill_lattice_kernel, kLatticeCount> kLattices;

}  // namespace ggufmill::reference
