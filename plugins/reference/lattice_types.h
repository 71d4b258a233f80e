#pragma once
// Kernels of IQ2_XXS, IQ2_XS, IQ2_S (iq2_formats.h), IQ3_XXS and IQ3_S (iq3_formats.h). The codecs are instantiated in
// lattice_types.cpp.

#include "plugins/reference/iq2_formats.h"
#include "plugins/reference/iq3_formats.h"
#include "plugins/reference/iq_codec.h"

namespace ggufmill::reference {

extern template struct LatticeCodec<Iq2XxsFormat>;
extern template struct LatticeCodec<Iq2XsFormat>;
extern template struct LatticeCodec<Iq2SFormat>;
extern template struct LatticeCodec<Iq3XxsFormat>;
extern template struct LatticeCodec<Iq3SFormat>;

inline constexpr auto kLatticeKernels =
    kernels_of<LatticeCodec<Iq2XxsFormat>, LatticeCodec<Iq2XsFormat>, LatticeCodec<Iq2SFormat>,
               LatticeCodec<Iq3XxsFormat>, LatticeCodec<Iq3SFormat>>();

}  // namespace ggufmill::reference
