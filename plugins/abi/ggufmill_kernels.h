/* The kernel ABI of ggufmill, version 1: all that a kernel module sees of the host, and all that the host sees of it.
 *
 * A module is a shared library that exports one constant, `ggufmill_kernels_v1`, of type `ggufmill_module`. It is data,
 * so that the host reads what the module needs (ISA, CPU features) before it runs one instruction of it. For that
 * reason a module has no constructors that use the instructions it asks for.
 *
 * C11, no dependencies but <stdint.h>. */
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

/* What a kernel does. Every conversion of one type to another is a decode to F32 and an encode from F32. */
enum {
  GGUFMILL_DECODE = 1, /* rows of the type -> rows of F32 */
  GGUFMILL_ENCODE = 2  /* rows of F32 -> rows of the type */
};

/* Kernel flags; they speak of encoding only. */
enum {
  GGUFMILL_NEEDS_IMPORTANCE = 1u << 0,  /* `importance` is never null; the host refuses the job without it */
  GGUFMILL_ACCEPTS_IMPORTANCE = 1u << 1 /* `importance` may be null or not; without this flag it is always null */
};

/* Status of a run. Any other value is a failure of the kernel's own; the host reports it and stops the job. */
enum {
  GGUFMILL_OK = 0,
  GGUFMILL_CANNOT_REPRESENT = 1 /* the weights are beyond what the type can hold, as where their squares overflow */
};

/* One call: `rows` whole rows of `cols` elements each, of one tensor.
 *
 * src         rows * row size of the source type, bytes; aligned for the source's elements only (2 for F16, 4 for F32,
 *             1 for blocks), never overlapping dst; to encode, finite numbers only: the host has looked
 * dst         rows * row size of the target type, bytes; aligned likewise; written wholly, nothing beside it
 * rows        at least 1
 * cols        a positive multiple of the type's block elements
 * importance  `cols` weights, all finite and not negative, shared by all rows of the call; or null
 *
 * A row's bytes depend on that row, `cols` and `importance` alone: not on `rows`, the thread, earlier calls or the ISA.
 */
typedef struct ggufmill_call {
  const void* src;
  void* dst;
  uint64_t rows;
  uint64_t cols;
  const float* importance;
} ggufmill_call;

/* Reentrant; no allocation that outlives the call, no I/O, no exceptions, no signals, no change of the floating-point
 * environment. Returns GGUFMILL_OK or a status of its own. */
typedef int32_t (*ggufmill_run)(const ggufmill_call* call);

typedef struct ggufmill_kernel {
  uint32_t operation;      /* GGUFMILL_DECODE or GGUFMILL_ENCODE */
  uint32_t type_id;        /* as in the GGUF file, or one of a type below that no GGUF holds */
  uint32_t block_elements; /* of the type; the host refuses a kernel whose block differs from the type's */
  uint32_t block_bytes;
  uint32_t flags;
  uint32_t reserved; /* 0 */
  const char* name;  /* of the type, as users write it: "Q4_K" */
  ggufmill_run run;
} ggufmill_kernel;

typedef struct ggufmill_module {
  uint32_t magic;       /* GGUFMILL_MAGIC */
  uint32_t struct_size; /* sizeof(ggufmill_module) */
  uint32_t abi_major;   /* GGUFMILL_ABI_MAJOR; another major is refused */
  uint32_t abi_minor;   /* GGUFMILL_ABI_MINOR; a greater one than the host's is refused */
  uint32_t kernel_size; /* sizeof(ggufmill_kernel) */
  uint32_t kernel_count;
  const char* name;         /* of the module: letters, digits, '-', '_', '.' */
  const char* version;      /* of the module */
  const char* isa;          /* one of the host's: "reference", "x86-64-v2", "x86-64-v3", "x86-64-v4", "arm64-neon" */
  const char* cpu_features; /* what it runs, as in /proc/cpuinfo, separated by spaces: "avx2 f16c"; "" for none */
  const ggufmill_kernel* kernels;
} ggufmill_module;

/* Types that only other formats have, decoded alone: F8_E4M3 (without infinities), F8_E5M2, BOOL, U8, U16, U32, U64, of
 * one element a block, U4 (two a byte, the first in the low bits) and U2 (four), in this order from here upward. */
#define GGUFMILL_FIRST_SOURCE_TYPE UINT32_C(0x8000)

/* A module that brings a type of its own takes an id from here upward; the host adds the type from the kernel's name
 * and block when it loads the module. */
#define GGUFMILL_FIRST_FOREIGN_TYPE UINT32_C(0x10000)

#ifdef __cplusplus
}
#endif

#endif
