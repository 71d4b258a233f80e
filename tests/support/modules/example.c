/* A module of one type, X3_EXAMPLE: blocks of 16 elements in 20 bytes, a float32 scale and 16 signed bytes; element =
 * scale * byte. It does not take importance. */
#include <ggufmill_kernels.h>

#define TYPE_ID (GGUFMILL_FIRST_FOREIGN_TYPE + 1)
#define BLOCK_ELEMENTS 16
#define BLOCK_BYTES 20

/* A block may be at any address, so its scale is copied byte by byte. */
typedef union scale_bytes {
  float scale;
  uint8_t bytes[4];
} scale_bytes;

static float largest_magnitude(const float* x) {
  float largest = 0.0f;
  for (int i = 0; i < BLOCK_ELEMENTS; ++i) {
    const float magnitude = x[i] < 0.0f ? -x[i] : x[i];
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

/* Rounds to the nearest integer, halves away from zero, clamped to [-127, 127]. The comparison in the first test is
 * false for NaN, which therefore becomes -127. */
static int8_t round_to_byte(float x) {
  if (!(x > -127.0f)) return -127;
  if (x > 127.0f) return 127;
  return (int8_t)(x < 0.0f ? x - 0.5f : x + 0.5f);
}

static void encode_block(const float* x, uint8_t* block) {
  const scale_bytes scale = {.scale = largest_magnitude(x) / 127.0f};
  const float inverse = scale.scale > 0.0f ? 1.0f / scale.scale : 0.0f;
  for (int i = 0; i < 4; ++i) block[i] = scale.bytes[i];
  for (int i = 0; i < BLOCK_ELEMENTS; ++i) block[4 + i] = (uint8_t)round_to_byte(x[i] * inverse);
}

static void decode_block(const uint8_t* block, float* y) {
  scale_bytes scale;
  for (int i = 0; i < 4; ++i) scale.bytes[i] = block[i];
  for (int i = 0; i < BLOCK_ELEMENTS; ++i) y[i] = scale.scale * (float)(int8_t)block[4 + i];
}

static int32_t encode(const ggufmill_call* call) {
  const float* x = call->src;
  uint8_t* block = call->dst;
  const uint64_t blocks = call->rows * (call->cols / BLOCK_ELEMENTS);
  for (uint64_t i = 0; i < blocks; ++i) encode_block(x + i * BLOCK_ELEMENTS, block + i * BLOCK_BYTES);
  return GGUFMILL_OK;
}

static int32_t decode(const ggufmill_call* call) {
  const uint8_t* block = call->src;
  float* y = call->dst;
  const uint64_t blocks = call->rows * (call->cols / BLOCK_ELEMENTS);
  for (uint64_t i = 0; i < blocks; ++i) decode_block(block + i * BLOCK_BYTES, y + i * BLOCK_ELEMENTS);
  return GGUFMILL_OK;
}

/* The place of a block's scale, which the host needs to check and to swap a block. */
static const ggufmill_field fields[] = {{GGUFMILL_SCALE_F32, GGUFMILL_IN_BLOCK, 0, 1}};

static const ggufmill_kernel kernels[] = {
    {
        .operation = GGUFMILL_ENCODE,
        .type_id = TYPE_ID,
        .block_elements = BLOCK_ELEMENTS,
        .block_bytes = BLOCK_BYTES,
        .name = "X3_EXAMPLE",
        .run = encode,
        .fields = fields,
        .field_count = sizeof fields / sizeof fields[0],
    },
    {
        .operation = GGUFMILL_DECODE,
        .type_id = TYPE_ID,
        .block_elements = BLOCK_ELEMENTS,
        .block_bytes = BLOCK_BYTES,
        .name = "X3_EXAMPLE",
        .run = decode,
        .fields = fields,
        .field_count = sizeof fields / sizeof fields[0],
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
    .name = "example",
    .version = "1",
    .isa = "reference",
    .cpu_features = "",
    .kernels = kernels,
};
