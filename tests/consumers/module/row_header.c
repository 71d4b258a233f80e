/* An out-of-tree kernel module for a type whose rows begin with a header: X8_ROW, one float32 scale for the row, then
 * one signed byte for each element; element = scale * byte.
 *
 * Build it as mine.c. */
#include <ggufmill_kernels.h>

#define TYPE_ID (GGUFMILL_FIRST_FOREIGN_TYPE + 8)
#define HEADER_BYTES 4
#define BLOCK 32 /* elements, and bytes */

/* A row may be at any address, so its scale is copied byte by byte. */
typedef union scale_bytes {
  float scale;
  uint8_t bytes[HEADER_BYTES];
} scale_bytes;

static float magnitude(float x) { return x < 0.0f ? -x : x; }

static int32_t encode(const ggufmill_call* call) {
  const float* x = call->src;
  uint8_t* row = call->dst;
  for (uint64_t r = 0; r < call->rows; ++r, x += call->cols, row += HEADER_BYTES + call->cols) {
    float largest = 0.0f;
    for (uint64_t i = 0; i < call->cols; ++i) largest = magnitude(x[i]) > largest ? magnitude(x[i]) : largest;
    const scale_bytes scale = {.scale = largest / 127.0f};
    for (int i = 0; i < HEADER_BYTES; ++i) row[i] = scale.bytes[i];
    for (uint64_t i = 0; i < call->cols; ++i) {
      const float y = scale.scale > 0.0f ? x[i] / scale.scale : 0.0f;
      row[HEADER_BYTES + i] = (uint8_t)(int8_t)(y < 0.0f ? y - 0.5f : y + 0.5f);
    }
  }
  return GGUFMILL_OK;
}

static int32_t decode(const ggufmill_call* call) {
  const uint8_t* row = call->src;
  float* y = call->dst;
  for (uint64_t r = 0; r < call->rows; ++r, y += call->cols, row += HEADER_BYTES + call->cols) {
    scale_bytes scale;
    for (int i = 0; i < HEADER_BYTES; ++i) scale.bytes[i] = row[i];
    for (uint64_t i = 0; i < call->cols; ++i) y[i] = scale.scale * (float)(int8_t)row[HEADER_BYTES + i];
  }
  return GGUFMILL_OK;
}

/* The place of a row's scale, which the host needs to check and to swap a row. */
static const ggufmill_field fields[] = {{GGUFMILL_SCALE_F32, GGUFMILL_IN_ROW_HEADER, 0, 1}};

static const ggufmill_kernel kernels[] = {
    {
        .operation = GGUFMILL_ENCODE,
        .type_id = TYPE_ID,
        .block_elements = BLOCK,
        .block_bytes = BLOCK,
        .row_header_bytes = HEADER_BYTES,
        .name = "X8_ROW",
        .run = encode,
        .fields = fields,
        .field_count = sizeof fields / sizeof fields[0],
    },
    {
        .operation = GGUFMILL_DECODE,
        .type_id = TYPE_ID,
        .block_elements = BLOCK,
        .block_bytes = BLOCK,
        .row_header_bytes = HEADER_BYTES,
        .name = "X8_ROW",
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
    .name = "row_header",
    .version = "1",
    .isa = "reference",
    .cpu_features = "",
    .kernels = kernels,
};
