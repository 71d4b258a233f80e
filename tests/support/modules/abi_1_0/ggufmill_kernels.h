/* The kernel ABI of ggufmill, version 1. It is the entire interface between the host and a kernel module.
 *
 * A module is a shared library that exports one constant, `ggufmill_kernels_v1`, of type `ggufmill_module`. The
 * constant is plain data, so that the host can read the requirements of the module (ISA, CPU features) before it
 * executes any instruction of it. For this reason, a module must not have constructors that use the instructions it
 * requires.
 *
 * C11; the only dependency is <stdint.h>. */
#ifndef GGUFMILL_KERNELS_H
#define GGUFMILL_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "GMKM" in memory order on a little-endian machine. */
#define GGUFMILL_MAGIC UINT32_C(0x4d4b4d47)
#define GGUFMILL_ABI_MAJOR 1
#define GGUFMILL_ABI_MINOR 0
#define GGUFMILL_SYMBOL "ggufmill_kernels_v1"

/* Operation of a kernel. Every conversion between two types is a decode to F32 followed by an encode from F32. */
enum {
  GGUFMILL_DECODE = 1, /* rows of the type -> rows of F32 */
  GGUFMILL_ENCODE = 2  /* rows of F32 -> rows of the type */
};

/* Kernel flags; they apply only to encoding. */
enum {
  GGUFMILL_NEEDS_IMPORTANCE = 1u << 0,  /* `importance` is never null; the host refuses a job without it */
  GGUFMILL_ACCEPTS_IMPORTANCE = 1u << 1 /* `importance` may be null; without either flag, it is always null */
};

/* Status of a run. Any other value is a failure specific to the kernel; the host reports it and stops the job. */
enum {
  GGUFMILL_OK = 0,
  GGUFMILL_CANNOT_REPRESENT = 1 /* the type cannot represent the weights, for example because their squares overflow */
};

/* One call: `rows` complete rows of one tensor, with `cols` elements each.
 *
 * src         Input: `rows` times the row size of the source type, in bytes. Aligned only to the elements of the source
 *             type (2 for F16, 4 for F32, 1 for blocks). Never overlaps dst. For encoding, the host guarantees that all
 *             values are finite.
 * dst         Output: `rows` times the row size of the target type, in bytes. Aligned to the elements of the target
 *             type in the same way. The kernel must write all of it, and nothing outside it.
 * rows        At least 1.
 * cols        A positive multiple of the block elements of the type.
 * importance  `cols` weights, all finite and non-negative, shared by all rows of the call; or null.
 *
 * The output bytes of a row must depend only on that row, `cols` and `importance`: not on `rows`, the thread, earlier
 * calls or the ISA. */
typedef struct ggufmill_call {
  const void* src;
  void* dst;
  uint64_t rows;
  uint64_t cols;
  const float* importance;
} ggufmill_call;

/* Executes one call. Must be reentrant. Must not leave an allocation behind after the call, perform I/O, throw
 * exceptions, raise signals or change the floating-point environment. Returns GGUFMILL_OK or another status. */
typedef int32_t (*ggufmill_run)(const ggufmill_call* call);

typedef struct ggufmill_kernel {
  uint32_t operation;      /* GGUFMILL_DECODE or GGUFMILL_ENCODE */
  uint32_t type_id;        /* as in GGUF files, or an id defined below, which GGUF files do not use */
  uint32_t block_elements; /* elements per block; the host refuses a kernel whose block differs from that of the type */
  uint32_t block_bytes;    /* bytes per block */
  uint32_t flags;
  uint32_t reserved; /* 0 */
  const char* name;  /* name of the type, as users write it: "Q4_K" */
  ggufmill_run run;
} ggufmill_kernel;

typedef struct ggufmill_module {
  uint32_t magic;           /* GGUFMILL_MAGIC */
  uint32_t struct_size;     /* sizeof(ggufmill_module) */
  uint32_t abi_major;       /* GGUFMILL_ABI_MAJOR; the host refuses any other major version */
  uint32_t abi_minor;       /* GGUFMILL_ABI_MINOR; the host refuses a minor version greater than its own */
  uint32_t kernel_size;     /* sizeof(ggufmill_kernel) */
  uint32_t kernel_count;    /* number of elements in `kernels` */
  const char* name;         /* name of the module: letters, digits, '-', '_', '.' */
  const char* version;      /* version of the module */
  const char* isa;          /* known to the host: "reference", "x86-64-v2", "x86-64-v3", "x86-64-v4", "arm64-neon" */
  const char* cpu_features; /* required, named as in /proc/cpuinfo, separated by spaces: "avx2 f16c"; "" for none */
  const ggufmill_kernel* kernels;
} ggufmill_module;

/* First id of the decode-only types, which occur only in formats other than GGUF. The ids are consecutive, in this
 * order: F8_E4M3 (without infinities), F8_E5M2, BOOL, U8, U16, U32 and U64, with one element per block; U4, with two
 * elements per byte, and U2, with four, the first element in the low bits. */
#define GGUFMILL_FIRST_SOURCE_TYPE UINT32_C(0x8000)

/* First id for types that a module defines itself. When the host loads the module, it adds the type, with the name and
 * the block of the kernel. */
#define GGUFMILL_FIRST_FOREIGN_TYPE UINT32_C(0x10000)

#ifdef __cplusplus
}
#endif

#endif
