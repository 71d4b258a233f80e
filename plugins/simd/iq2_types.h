#pragma once
// IQ2_XXS, IQ2_XS and IQ2_S. The formats are described in plugins/reference/iq2_formats.h.

#include "plugins/reference/iq2_formats.h"
#include "plugins/simd/lattice_types.h"

namespace ggufmill::simd {

using Iq2Xxs = LatticeCodec<reference::Iq2XxsFormat>;
using Iq2Xs = LatticeCodec<reference::Iq2XsFormat>;
using Iq2S = LatticeCodec<reference::Iq2SFormat>;

inline constexpr auto kIq2Kernels = kernels_of<Iq2Xxs, Iq2Xs, Iq2S>();

}  // namespace ggufmill::simd
