#include <ggufmill_kernels.h>
#include <string.h>

/* An id for yourself: one that no other module of your users has. */
#define TYPE_ID (GGUFMILL_FIRST_FOREIGN_TYPE + 4242)
#define VALUES 32
#define BYTES 20
#ifndef ISA
#define ISA "reference"
#endif

static int level_of(float x) { /* to the nearest of -8 .. 7 */
  if (!(x > -8.0f)) return -8;
  if (x > 7.0f) return 7;
  return (int)(x < 0.0f ? x - 0.5f : x + 0.5f);
}

static void encode_block(const float* x, const float* importance, uint8_t* block) {
  float most = 0.0f, xl = 0.0f, ll = 0.0f;
  for (int i = 0; i < VALUES; ++i) {
    const float magnitude = x[i] < 0.0f ? -x[i] : x[i];
    if (magnitude > most) most = magnitude;
  }
  const float first = most / 7.0f, inverse = first > 0.0f ? 1.0f / first : 0.0f;
  for (int i = 0; i < VALUES; ++i) { /* the scale of least squares for these levels */
    const float weight = importance ? importance[i] : 1.0f, level = (float)level_of(x[i] * inverse);
    xl += weight * x[i] * level;
    ll += weight * level * level;
  }
  const float scale = ll > 0.0f ? xl / ll : first;
  memcpy(block, &scale, sizeof scale); /* a block may be at any address */
  for (int i = 0; i < VALUES / 2; ++i)
    block[4 + i] = (uint8_t)((level_of(x[2 * i] * inverse) + 8) | (level_of(x[2 * i + 1] * inverse) + 8) << 4);
}

static int32_t encode(const ggufmill_call* call) {
  const float* x = call->src;
  uint8_t* block = call->dst;
  for (uint64_t row = 0; row < call->rows; ++row)
    for (uint64_t at = 0; at < call->cols; at += VALUES, x += VALUES, block += BYTES)
      encode_block(x, call->importance ? call->importance + at : 0, block);
  return GGUFMILL_OK;
}

static int32_t decode(const ggufmill_call* call) {
  const uint8_t* block = call->src;
  float* y = call->dst;
  for (uint64_t n = call->rows * (call->cols / VALUES); n > 0; --n, block += BYTES) {
    float scale;
    memcpy(&scale, block, sizeof scale);
    for (int i = 0; i < VALUES / 2; ++i) {
      *y++ = scale * (float)((block[4 + i] & 15) - 8);
      *y++ = scale * (float)((block[4 + i] >> 4) - 8);
    }
  }
  return GGUFMILL_OK;
}

/* Scales, which must be finite, and words, which have a byte order. */
static const ggufmill_field fields[] = {{GGUFMILL_SCALE_F32, GGUFMILL_IN_BLOCK, 0, 1}};

static const ggufmill_kernel kernels[] = {
    {.operation = GGUFMILL_ENCODE,
     .type_id = TYPE_ID,
     .block_elements = VALUES,
     .block_bytes = BYTES,
     .flags = GGUFMILL_ACCEPTS_IMPORTANCE,
     .name = "X4_MINE",
     .run = encode,
     .fields = fields,
     .field_count = 1},
    {.operation = GGUFMILL_DECODE,
     .type_id = TYPE_ID,
     .block_elements = VALUES,
     .block_bytes = BYTES,
     .name = "X4_MINE",
     .run = decode,
     .fields = fields,
     .field_count = 1},
};

GGUFMILL_EXPORT extern const ggufmill_module ggufmill_kernels_v1;
const ggufmill_module ggufmill_kernels_v1 = {
    .magic = GGUFMILL_MAGIC,
    .struct_size = sizeof(ggufmill_module),
    .abi_major = GGUFMILL_ABI_MAJOR,
    .abi_minor = GGUFMILL_ABI_MINOR,
    .kernel_size = sizeof(ggufmill_kernel),
    .kernel_count = sizeof kernels / sizeof kernels[0],
    .name = "mine",
    .version = "1",
    .isa = ISA,
    .cpu_features = "",
    .kernels = kernels,
};
