#pragma once
// IQ3_XXS and IQ3_S. The formats are described in plugins/reference/iq3_formats.h.

#include "plugins/reference/iq3_formats.h"
#include "plugins/simd/lattice_types.h"

namespace ggufmill::simd {

using Iq3Xxs = LatticeCodec<reference::Iq3XxsFormat>;
using Iq3S = LatticeCodec<reference::Iq3SFormat>;

inline constexpr auto kIq3Kernels = kernels_of<Iq3Xxs, Iq3S>();

}  // namespace ggufmill::simd
