#pragma once
// Types of one number per element. F32, F16, BF16 and F64 are converted one at a time; the rounding rules come from
// ggml, src/ggml-impl.h, and F64 is rounded to the nearest F32. Integers, and decode-only types that occur only in
// sources other than GGUF. Integers decode to the nearest F32, and values encode to the nearest integer, ties to even;
// a value outside the range of the integer type cannot be represented. Integers smaller than a byte are packed starting
// at the low bits of the first byte. Source of the 8-bit floats: OCP 8-bit Floating Point Specification (OFP8),
// revision 1.0.

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

int32_t decode_i8(const ggufmill_call* call);
int32_t decode_i16(const ggufmill_call* call);
int32_t decode_i32(const ggufmill_call* call);
int32_t decode_i64(const ggufmill_call* call);
int32_t encode_i8(const ggufmill_call* call);
int32_t encode_i16(const ggufmill_call* call);
int32_t encode_i32(const ggufmill_call* call);
int32_t encode_i64(const ggufmill_call* call);
int32_t decode_e4m3(const ggufmill_call* call);
int32_t decode_e5m2(const ggufmill_call* call);
int32_t decode_bool(const ggufmill_call* call);
int32_t decode_u8(const ggufmill_call* call);
int32_t decode_u16(const ggufmill_call* call);
int32_t decode_u32(const ggufmill_call* call);
int32_t decode_u64(const ggufmill_call* call);
int32_t decode_u4(const ggufmill_call* call);
int32_t decode_u2(const ggufmill_call* call);
int32_t decode_u3(const ggufmill_call* call);
int32_t decode_u5(const ggufmill_call* call);
int32_t decode_u6(const ggufmill_call* call);

inline constexpr std::array kNumberKernels = {
    plain_kernel(GGUFMILL_DECODE, 24, 1, 1, "I8", decode_i8),
    plain_kernel(GGUFMILL_ENCODE, 24, 1, 1, "I8", encode_i8),
    plain_kernel(GGUFMILL_DECODE, 25, 1, 2, "I16", decode_i16),
    plain_kernel(GGUFMILL_ENCODE, 25, 1, 2, "I16", encode_i16),
    plain_kernel(GGUFMILL_DECODE, 26, 1, 4, "I32", decode_i32),
    plain_kernel(GGUFMILL_ENCODE, 26, 1, 4, "I32", encode_i32),
    plain_kernel(GGUFMILL_DECODE, 27, 1, 8, "I64", decode_i64),
    plain_kernel(GGUFMILL_ENCODE, 27, 1, 8, "I64", encode_i64),
    plain_kernel(GGUFMILL_DECODE, GGUFMILL_FIRST_SOURCE_TYPE + 0, 1, 1, "F8_E4M3", decode_e4m3),
    plain_kernel(GGUFMILL_DECODE, GGUFMILL_FIRST_SOURCE_TYPE + 1, 1, 1, "F8_E5M2", decode_e5m2),
    plain_kernel(GGUFMILL_DECODE, GGUFMILL_FIRST_SOURCE_TYPE + 2, 1, 1, "BOOL", decode_bool),
    plain_kernel(GGUFMILL_DECODE, GGUFMILL_FIRST_SOURCE_TYPE + 3, 1, 1, "U8", decode_u8),
    plain_kernel(GGUFMILL_DECODE, GGUFMILL_FIRST_SOURCE_TYPE + 4, 1, 2, "U16", decode_u16),
    plain_kernel(GGUFMILL_DECODE, GGUFMILL_FIRST_SOURCE_TYPE + 5, 1, 4, "U32", decode_u32),
    plain_kernel(GGUFMILL_DECODE, GGUFMILL_FIRST_SOURCE_TYPE + 6, 1, 8, "U64", decode_u64),
    plain_kernel(GGUFMILL_DECODE, GGUFMILL_FIRST_SOURCE_TYPE + 7, 2, 1, "U4", decode_u4),
    plain_kernel(GGUFMILL_DECODE, GGUFMILL_FIRST_SOURCE_TYPE + 8, 4, 1, "U2", decode_u2),
    plain_kernel(GGUFMILL_DECODE, GGUFMILL_FIRST_SOURCE_TYPE + 9, 8, 3, "U3", decode_u3),
    plain_kernel(GGUFMILL_DECODE, GGUFMILL_FIRST_SOURCE_TYPE + 10, 8, 5, "U5", decode_u5),
    plain_kernel(GGUFMILL_DECODE, GGUFMILL_FIRST_SOURCE_TYPE + 11, 4, 3, "U6", decode_u6),
};

}  // namespace ggufmill::reference
