/* A valid module that decodes and encodes F32 by copying. Each macro makes one property of it wrong or different, for
 * tests of the host. */
#include <ggufmill_kernels.h>

#ifndef MODULE_MAGIC
#define MODULE_MAGIC GGUFMILL_MAGIC
#endif
#ifndef MODULE_STRUCT_SIZE
#define MODULE_STRUCT_SIZE sizeof(ggufmill_module)
#endif
#ifndef MODULE_ABI_MAJOR
#define MODULE_ABI_MAJOR GGUFMILL_ABI_MAJOR
#endif
#ifndef MODULE_ABI_MINOR
#define MODULE_ABI_MINOR GGUFMILL_ABI_MINOR
#endif
#ifndef MODULE_KERNEL_SIZE
#define MODULE_KERNEL_SIZE sizeof(ggufmill_kernel)
#endif
#ifndef MODULE_KERNEL_COUNT
#define MODULE_KERNEL_COUNT (sizeof variant_kernels / sizeof variant_kernels[0])
#endif
#ifndef MODULE_KERNELS
#define MODULE_KERNELS variant_kernels
#endif
#ifndef MODULE_NAME
#define MODULE_NAME "variant"
#endif
#ifndef MODULE_ISA
#define MODULE_ISA "reference"
#endif
#ifndef MODULE_CPU_FEATURES
#define MODULE_CPU_FEATURES ""
#endif
#ifndef MODULE_SYMBOL
#define MODULE_SYMBOL ggufmill_kernels_v1
#endif
#ifndef ENCODE_OPERATION
#define ENCODE_OPERATION GGUFMILL_ENCODE
#endif
#ifndef ENCODE_RUN
#define ENCODE_RUN copy
#endif
#ifndef DECODE_RUN
#define DECODE_RUN copy
#endif
#ifndef ENCODE_FLAGS
#define ENCODE_FLAGS 0
#endif
#ifndef DECODE_FLAGS
#define DECODE_FLAGS 0
#endif
#ifndef TYPE_ID
#define TYPE_ID 0
#endif
#ifndef TYPE_NAME
#define TYPE_NAME "F32"
#endif
#ifndef ROW_HEADER
#define ROW_HEADER 0
#endif
#ifndef BLOCK_ELEMENTS
#define BLOCK_ELEMENTS 1
#endif
#ifndef BLOCK_BYTES
#define BLOCK_BYTES 4
#endif
#ifndef ENCODE_BLOCK_BYTES
#define ENCODE_BLOCK_BYTES BLOCK_BYTES
#endif
#ifndef ENCODER
#define ENCODER 0
#endif
#ifndef FIELDS
#define FIELDS 0
#define FIELD_COUNT 0
#endif
#ifndef FIELD_COUNT
#define FIELD_COUNT 1
#endif
#ifndef FIELD
#define FIELD GGUFMILL_SCALE_F32, GGUFMILL_IN_BLOCK, 0, 1
#endif

/* The end of a kernel's description, which version 1.0 does not have. */
#if GGUFMILL_ABI_MINOR == 0
#define SINCE_1_1(encoder)
#else
#define SINCE_1_1(encoder) , encoder, FIELDS, FIELD_COUNT, 0
extern const ggufmill_field fields[];
const ggufmill_field fields[] = {{FIELD}};
#endif

#ifdef MODULE_CONSTRUCTOR_TRAPS
__attribute__((constructor)) static void trap(void) { __builtin_trap(); }
#endif

#ifdef MODULE_CONSTRUCTOR_EXITS
#include <stdlib.h>
__attribute__((constructor)) static void leave(void) { _Exit(0); }
#endif
#ifdef MODULE_CONSTRUCTOR_HANGS
__attribute__((constructor)) static void hang(void) {
  for (volatile int i = 0;; i = i + 1 > 1000 ? 0 : i + 1) {
  }
}
#endif

int32_t copy(const ggufmill_call* call);
int32_t copy(const ggufmill_call* call) {
  const float* from = call->src;
  float* to = call->dst;
  for (uint64_t i = 0; i < call->rows * call->cols; ++i) to[i] = from[i];
  return GGUFMILL_OK;
}

int32_t negate(const ggufmill_call* call);
int32_t negate(const ggufmill_call* call) {
  const float* from = call->src;
  float* to = call->dst;
  for (uint64_t i = 0; i < call->rows * call->cols; ++i) to[i] = -from[i];
  return GGUFMILL_OK;
}

/* A block holds the first bytes of its values. */
int32_t cut(const ggufmill_call* call);
int32_t cut(const ggufmill_call* call) {
  const uint8_t* from = call->src;
  uint8_t* to = call->dst;
  for (uint64_t i = 0; i < call->rows * call->cols / BLOCK_ELEMENTS; ++i)
    for (uint64_t k = 0; k < BLOCK_BYTES; ++k) to[i * BLOCK_BYTES + k] = from[4 * i * BLOCK_ELEMENTS + k];
  return GGUFMILL_OK;
}

/* The values of a block are its bytes. */
int32_t widen(const ggufmill_call* call);
int32_t widen(const ggufmill_call* call) {
  const uint8_t* from = call->src;
  float* to = call->dst;
  for (uint64_t i = 0; i < call->rows * call->cols; ++i)
    to[i] = from[i / BLOCK_ELEMENTS * BLOCK_BYTES + i % BLOCK_ELEMENTS % BLOCK_BYTES];
  return GGUFMILL_OK;
}

extern const ggufmill_kernel variant_kernels[];
const ggufmill_kernel variant_kernels[] = {
    {GGUFMILL_DECODE, TYPE_ID, BLOCK_ELEMENTS, BLOCK_BYTES, DECODE_FLAGS, ROW_HEADER, TYPE_NAME,
     DECODE_RUN SINCE_1_1(0)},
    {ENCODE_OPERATION, TYPE_ID, BLOCK_ELEMENTS, ENCODE_BLOCK_BYTES, ENCODE_FLAGS, ROW_HEADER, TYPE_NAME,
     ENCODE_RUN SINCE_1_1(ENCODER)},
#ifdef WITH_UNKNOWN_TYPE
    {GGUFMILL_DECODE, 999, 1, 1, 0, 0, "Q9_Z", copy SINCE_1_1(0)},
#endif
};

extern const ggufmill_module MODULE_SYMBOL;
const ggufmill_module MODULE_SYMBOL = {
    .magic = MODULE_MAGIC,
    .struct_size = MODULE_STRUCT_SIZE,
    .abi_major = MODULE_ABI_MAJOR,
    .abi_minor = MODULE_ABI_MINOR,
    .kernel_size = MODULE_KERNEL_SIZE,
    .kernel_count = MODULE_KERNEL_COUNT,
    .name = MODULE_NAME,
    .version = "1",
    .isa = MODULE_ISA,
    .cpu_features = MODULE_CPU_FEATURES,
    .kernels = MODULE_KERNELS,
};
