/* A kernel module made with the installed header alone: X_TOP16 is the upper 16 bits of a float32. */
#include <ggufmill_kernels.h>
#include <string.h>

#define TYPE_ID (GGUFMILL_FIRST_FOREIGN_TYPE + 7)

static int32_t encode(const ggufmill_call* call) {
  const uint8_t* from = call->src;
  uint8_t* to = call->dst;
  for (uint64_t i = 0; i < call->rows * call->cols; ++i) memcpy(to + 2 * i, from + 4 * i + 2, 2);
  return GGUFMILL_OK;
}

static int32_t decode(const ggufmill_call* call) {
  const uint8_t* from = call->src;
  uint8_t* to = call->dst;
  memset(to, 0, 4 * call->rows * call->cols);
  for (uint64_t i = 0; i < call->rows * call->cols; ++i) memcpy(to + 4 * i + 2, from + 2 * i, 2);
  return GGUFMILL_OK;
}

static const ggufmill_kernel kernels[] = {
    {GGUFMILL_ENCODE, TYPE_ID, 1, 2, 0, 0, "X_TOP16", encode},
    {GGUFMILL_DECODE, TYPE_ID, 1, 2, 0, 0, "X_TOP16", decode},
};

extern const ggufmill_module ggufmill_kernels_v1;
const ggufmill_module ggufmill_kernels_v1 = {
    .magic = GGUFMILL_MAGIC,
    .struct_size = sizeof(ggufmill_module),
    .abi_major = GGUFMILL_ABI_MAJOR,
    .abi_minor = GGUFMILL_ABI_MINOR,
    .kernel_size = sizeof(ggufmill_kernel),
    .kernel_count = sizeof kernels / sizeof kernels[0],
    .name = "top16",
    .version = "1",
    .isa = "reference",
    .cpu_features = "",
    .kernels = kernels,
};
