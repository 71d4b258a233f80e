#pragma once
// F32, F16, BF16 and F64: one element per block, converted one at a time. The rounding rules come from ggml,
// src/ggml-impl.h; F64 is rounded to the nearest F32.

#include <array>

#include "plugins/reference/codec.h"

namespace ggufmill::reference {

int32_t copy_f32(const ggufmill_call* call);
int32_t decode_f16(const ggufmill_call* call);
int32_t encode_f16(const ggufmill_call* call);
int32_t decode_bf16(const ggufmill_call* call);
int32_t encode_bf16(const ggufmill_call* call);
int32_t decode_f64(const ggufmill_call* call);
int32_t encode_f64(const ggufmill_call* call);

inline constexpr std::array kFloatKernels = {
    plain_kernel(GGUFMILL_DECODE, 0, 1, 4, "F32", copy_f32),
    plain_kernel(GGUFMILL_ENCODE, 0, 1, 4, "F32", copy_f32),
    plain_kernel(GGUFMILL_DECODE, 1, 1, 2, "F16", decode_f16),
    plain_kernel(GGUFMILL_ENCODE, 1, 1, 2, "F16", encode_f16),
    plain_kernel(GGUFMILL_DECODE, 28, 1, 8, "F64", decode_f64),
    plain_kernel(GGUFMILL_ENCODE, 28, 1, 8, "F64", encode_f64),
    plain_kernel(GGUFMILL_DECODE, 30, 1, 2, "BF16", decode_bf16),
    plain_kernel(GGUFMILL_ENCODE, 30, 1, 2, "BF16", encode_bf16),
};

}  // namespace ggufmill::reference
