#pragma once
// Encoders of llama.cpp's types, with the bytes that ik_llama.cpp gives them: the encoder `ik`. Types that are not here
// have the bytes of llama.cpp. Source: ik_llama.cpp, ggml/src/ggml-quants.c (MIT).
//
// If importance is zero for all weights of a super-block, ik_llama.cpp stops or writes a scale that is not a number;
// here it is 0. Q2_K without importance recognises ternary rows, for which it has levels of its own; ik_llama.cpp looks
// at the rows that one thread is given instead of each row.

#include <array>
#include <cstddef>

#include "plugins/reference/codec.h"
#include "plugins/reference/iq4_types.h"
#include "plugins/reference/k_types.h"
#include "plugins/reference/simple_types.h"

namespace ggufmill::ik {

// Each adds its encoder to the codec of the reference.
struct IkQ4_0 : reference::Q4_0 {
  static void encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block);
};
struct IkQ4_1 : reference::Q4_1 {
  static void encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block);
};
struct IkQ5_0 : reference::Q5_0 {
  static void encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block);
};
struct IkQ5_1 : reference::Q5_1 {
  static void encode_weighted(const float* x, const float* importance, float row_mean_square, Block& block);
};
struct IkQ2_K : reference::Q2_K {
  static void encode(const float* x, const float* importance, Block& block);
};
struct IkQ3_K : reference::Q3_K {
  static void encode(const float* x, const float* importance, Block& block);
};
struct IkQ4_K : reference::Q4_K {
  static void encode(const float* x, const float* importance, Block& block);
};
struct IkQ5_K : reference::Q5_K {
  static void encode(const float* x, const float* importance, Block& block);
};
struct IkQ6_K : reference::Q6_K {
  static void encode(const float* x, const float* importance, Block& block);
};
struct IkIq4Nl : reference::Iq4Nl {
  static void encode(const float* x, const float* importance, Block& block);
};
struct IkIq4Xs : reference::Iq4Xs {
  static void encode(const float* x, const float* importance, Block& block);
};

// Encodes rows of Q2_K.
int32_t encode_q2_k_rows(const ggufmill_call* call);

template <class Codec>
constexpr ggufmill_kernel ik_encoder(ggufmill_run run = reference::encode_rows<Codec>) {
  ggufmill_kernel kernel = reference::kernel_of<Codec>(GGUFMILL_ENCODE, GGUFMILL_ACCEPTS_IMPORTANCE, run);
  kernel.encoder = "ik";
  return kernel;
}

inline constexpr std::array kLlamaKernels = {
    ik_encoder<IkQ4_0>(),
    ik_encoder<IkQ4_1>(),
    ik_encoder<IkQ5_0>(),
    ik_encoder<IkQ5_1>(),
    ik_encoder<IkQ2_K>(encode_q2_k_rows),
    ik_encoder<IkQ3_K>(),
    ik_encoder<IkQ4_K>(),
    ik_encoder<IkQ5_K>(),
    ik_encoder<IkQ6_K>(),
    ik_encoder<IkIq4Nl>(),
    ik_encoder<IkIq4Xs>(),
};

}  // namespace ggufmill::ik
