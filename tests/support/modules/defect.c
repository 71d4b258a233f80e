/* A module of one type, X_SOUND: blocks of 32 elements in 36 bytes, a float32 scale and 32 signed bytes. Elements whose
 * importance is 0 may be clipped. Each macro DEFECT_* makes one thing of it wrong, which the checks must find. */
#define _POSIX_C_SOURCE 200809L
#include <fenv.h>
#include <ggufmill_kernels.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#ifndef TYPE_ID
#define TYPE_ID (GGUFMILL_FIRST_FOREIGN_TYPE + 32)
#endif
#define BLOCK 32
#ifdef DEFECT_BLOCK
#define BLOCK_BYTES 40
#else
#define BLOCK_BYTES 36
#endif

#ifdef DEFECT_HEADER
#define HEADER_BYTES 4
#else
#define HEADER_BYTES 0
#endif

#ifdef DEFECT_THREADS
static float work[BLOCK];
#endif

static float magnitude(float x) { return x < 0.0f ? -x : x; }

static void encode_block(const float* x, const float* importance, uint8_t* block) {
#ifndef DEFECT_THREADS
  float work[BLOCK];
#endif
  memcpy(work, x, sizeof work);
#ifdef DEFECT_THREADS
  sched_yield();
#endif
#ifdef DEFECT_IMPORTANCE
  importance = 0;
#endif
  float largest = 0.0f;
  for (int i = 0; i < BLOCK; ++i)
    if ((!importance || importance[i] != 0.0f) && magnitude(work[i]) > largest) largest = magnitude(work[i]);
  float scale = largest / 127.0f;
#ifdef DEFECT_VALUES
  scale = 1.0f / (largest > 1e-3f ? 1.0f / scale : 0.0f);
#endif
  memcpy(block, &scale, sizeof scale);
  for (int i = 0; i < BLOCK; ++i) {
    const float y = scale > 0.0f ? work[i] / scale : 0.0f;
    const float bounded = y > 127.0f ? 127.0f : y > -127.0f ? y : -127.0f;
    block[4 + i] = (uint8_t)(int8_t)(bounded < 0.0f ? bounded - 0.5f : bounded + 0.5f);
  }
}

static int32_t encode(const ggufmill_call* call) {
  const float* x = call->src;
#ifdef DEFECT_RACE
  static float copy[65 * 128];
  if (call->rows * call->cols <= sizeof copy / sizeof copy[0]) {
    memcpy(copy, x, call->rows * call->cols * sizeof copy[0]);
    x = copy;
  }
#endif
  uint8_t* block = call->dst;
  const uint64_t blocks_a_row = call->cols / BLOCK, blocks = call->rows * blocks_a_row;
  for (uint64_t i = 0; i < blocks; ++i) {
    const float* importance = call->importance ? call->importance + i % blocks_a_row * BLOCK : 0;
    uint8_t* const to = block + i * BLOCK_BYTES;
#ifdef DEFECT_FEW
    uint8_t all[36];
    encode_block(x + i * BLOCK, importance, all);
    memcpy(to, all, i + 1 == blocks ? 35 : 36);
#else
    encode_block(x + i * BLOCK, importance, to);
#endif
  }
#ifdef DEFECT_MANY
  block[blocks * BLOCK_BYTES] = 0;
#endif
#ifdef DEFECT_BEFORE
  block[-1] = 0;
#endif
#ifdef DEFECT_ROWS
  block[4] = (uint8_t)(block[4] ^ (call->rows > 1));
#endif
#ifdef DEFECT_LANES
  if (call->rows >= 8) block[blocks * BLOCK_BYTES - 1] ^= 1;
#endif
#ifdef DEFECT_SCRATCH
  if (call->cols > 4096) abort();
#endif
#ifdef DEFECT_COUNTER
  static uint8_t count;
  block[5] = ++count;
#endif
#ifdef DEFECT_STATE
  static unsigned calls;
  block[4] = (uint8_t)(block[4] ^ (calls++ % 3 == 2));
#endif
#ifdef DEFECT_BEYOND
  block[4] = (uint8_t)(block[4] ^ (x[call->rows * call->cols] == 1.0f));
#endif
#ifdef DEFECT_IMPORTANCE_BEYOND
  if (call->importance) block[4] = (uint8_t)(block[4] ^ (call->importance[call->cols] == 1.0f));
#endif
#ifdef DEFECT_SOURCE
  ((float*)(uintptr_t)call->src)[0] = 0.0f;
#endif
#ifdef DEFECT_FLOATS
  fesetround(FE_UPWARD);
#endif
#ifdef DEFECT_HEAP
  void* volatile leaked = malloc(24);
  (void)leaked;
#endif
#ifdef DEFECT_ALIGNMENT
  block[4] = (uint8_t)(block[4] ^ ((uintptr_t)call->src % 16 != 0));
#endif
#ifdef DEFECT_CRASH
  if (call->cols > 100) abort();
#endif
#ifdef DEFECT_STATUS
  return call->rows > 1 ? 7 : GGUFMILL_OK;
#else
  return GGUFMILL_OK;
#endif
}

static int32_t decode(const ggufmill_call* call) {
  const uint8_t* block = call->src;
  float* y = call->dst;
  for (uint64_t i = 0; i < call->rows * (call->cols / BLOCK); ++i, block += BLOCK_BYTES) {
    float scale;
    memcpy(&scale, block, sizeof scale);
#ifdef DEFECT_REFERENCE
    scale = -scale;
#endif
#ifdef DEFECT_ZEROS
    scale = 0;
#endif
    for (int k = 0; k < BLOCK; ++k) *y++ = scale * (float)(int8_t)block[4 + k];
  }
#ifdef DEFECT_DECODER
  y[-1] = 0.0f * y[0];
#endif
  return GGUFMILL_OK;
}

static const ggufmill_field fields[] = {{GGUFMILL_SCALE_F32, GGUFMILL_IN_BLOCK, 0, 1}};

static const ggufmill_kernel kernels[] = {
    {
        .operation = GGUFMILL_ENCODE,
        .type_id = TYPE_ID,
        .block_elements = BLOCK,
        .block_bytes = BLOCK_BYTES,
        .flags = GGUFMILL_ACCEPTS_IMPORTANCE,
        .row_header_bytes = HEADER_BYTES,
        .name = "X_SOUND",
        .run = encode,
        .fields = fields,
        .field_count = 1,
    },
    {
        .operation = GGUFMILL_DECODE,
        .type_id = TYPE_ID,
        .block_elements = BLOCK,
        .block_bytes = BLOCK_BYTES,
        .row_header_bytes = HEADER_BYTES,
        .name = "X_SOUND",
        .run = decode,
        .fields = fields,
        .field_count = 1,
    },
};

GGUFMILL_EXPORT extern const ggufmill_module ggufmill_kernels_v1;
const ggufmill_module ggufmill_kernels_v1 = {
    .magic = GGUFMILL_MAGIC,
    .struct_size = sizeof(ggufmill_module),
    .abi_major = GGUFMILL_ABI_MAJOR,
    .abi_minor = GGUFMILL_ABI_MINOR,
    .kernel_size = sizeof(ggufmill_kernel),
    .kernel_count = sizeof kernels / sizeof kernels[0],
    .name = "sound",
    .version = "1",
    .isa = "reference",
    .cpu_features = "",
    .kernels = kernels,
};
