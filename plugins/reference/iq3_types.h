#pragma once
// The kernels of IQ3_XXS and IQ3_S (iq3_formats.h), compiled in iq3_types.cpp.

#include "plugins/reference/iq3_formats.h"
#include "plugins/reference/iq_codec.h"

namespace ggufmill::reference {

extern template struct LatticeCodec<Iq3XxsFormat>;
extern template struct LatticeCodec<Iq3SFormat>;

inline constexpr auto kIq3Kernels = kernels_of<LatticeCodec<Iq3XxsFormat>, LatticeCodec<Iq3SFormat>>();

}  // namespace ggufmill::reference
