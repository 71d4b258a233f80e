// Recognises rows whose values are those of a quantized type, because the weights were trained or rounded so, and
// encodes them without further loss. No encoder that minimizes an error finds all of them: the greatest value of a
// block can have any level, and only the exact scale reproduces the others.
//
// A block is recognised by trying every level for its extreme values. The scale that this gives must be exact as a half
// and reproduce every value as decoding does. Where a type has only a few levels, values off the lattice by up to two
// roundings to BF16 are recognised as well; their scale is that of least squared error. All arithmetic is exact or in
// element order, without fused operations.

#include "plugins/reference/exact_affine.h"
#include "plugins/reference/exact_scaled.h"
#include "plugins/reference/reference.h"

namespace ggufmill::reference {
namespace {

template <class Exact>
std::int32_t lattice_row(const float* x, std::uint64_t cols, void* row) {
  using Codec = typename Exact::Codec;
  std::int32_t least = GGUFMILL_LATTICE_EXACT;
  for (std::uint64_t at = 0; at < cols; at += Codec::kElements) {
    typename Codec::Block block;
    const std::int32_t found = Exact::find(x + at, block);
    if (found == GGUFMILL_LATTICE_NONE) return found;
    if (found < least) least = found;
    if (row) static_cast<typename Codec::Block*>(row)[at / Codec::kElements] = block;
  }
  return least;
}

template <class Exact>
constexpr ggufmill_lattice_kernel lattice_of() {
  return {Exact::Codec::kTypeId, Exact::Codec::kElements, lattice_row<Exact>};
}

constexpr std::array kLattices = {lattice_of<ExactScaled<WholeNumbers<Q4_0, -8, 7, -8, true>>>(),
                                  lattice_of<ExactLine<Q4_1, 15>>(),
                                  lattice_of<ExactScaled<WholeNumbers<Q5_0, -16, 15, -16, true>>>(),
                                  lattice_of<ExactLine<Q5_1, 31>>(),
                                  lattice_of<ExactScaled<WholeNumbers<Q8_0, -128, 127, 0, false>>>(),
                                  lattice_of<ExactSuperBlock<Q4_K, 15>>(),
                                  lattice_of<ExactSuperBlock<Q5_K, 31>>(),
                                  lattice_of<ExactScaled<TableValues>>()};

}  // namespace
}  // namespace ggufmill::reference

extern "C" constinit const ggufmill_lattice_table ggufmill_reference_lattices = {
    ggufmill::reference::kLattices.size(),
    ggufmill::reference::kLattices.data(),
};
