#pragma once
// The kernels of IQ2_XXS, IQ2_XS and IQ2_S (iq2_formats.h), compiled in iq2_types.cpp.

#include "plugins/reference/iq2_formats.h"
#include "plugins/reference/iq_codec.h"

namespace ggufmill::reference {

extern template struct LatticeCodec<Iq2XxsFormat>;
extern template struct LatticeCodec<Iq2XsFormat>;
extern template struct LatticeCodec<Iq2SFormat>;

inline constexpr auto kIq2Kernels =
    kernels_of<LatticeCodec<Iq2XxsFormat>, LatticeCodec<Iq2XsFormat>, LatticeCodec<Iq2SFormat>>();

}  // namespace ggufmill::reference
