/* The kernel ABI of ggufmill, version 1.1. It is the entire interface between the host and a kernel module.
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
#define GGUFMILL_ABI_MINOR 1
#define GGUFMILL_SYMBOL "ggufmill_kernels_v1"

/* Exports the constant from a module whose other symbols are hidden (-fvisibility=hidden). Since version 1.1. */
#if defined(_WIN32)
#define GGUFMILL_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define GGUFMILL_EXPORT __attribute__((visibility("default")))
#else
#define GGUFMILL_EXPORT
#endif

/* Operation of a kernel. Every conversion between two types is a decode to F32 followed by an encode from F32. */
enum {
  GGUFMILL_DECODE = 1, /* rows of the type -> rows of F32 */
  GGUFMILL_ENCODE = 2  /* rows of F32 -> rows of the type */
};

/* Kernel flags; they apply only to encoding. */
enum {
  GGUFMILL_NEEDS_IMPORTANCE = 1u << 0,   /* `importance` is never null; the host refuses a job without it */
  GGUFMILL_ACCEPTS_IMPORTANCE = 1u << 1, /* `importance` may be null; without either flag, it is always null */
  GGUFMILL_COMPENSATES = 1u << 2         /* a search with importance that supports `compensate`. Since 1.1 */
};

/* Number of rows whose encodings may depend on each other; the last rows of a matrix can be fewer. Since 1.1. */
#define GGUFMILL_ROWS_TOGETHER 256

/* Status of a run. Any other value is a failure specific to the kernel; the host reports it and stops the job. */
enum {
  GGUFMILL_OK = 0,
  GGUFMILL_CANNOT_REPRESENT = 1, /* the type cannot represent the weights, for example because their squares overflow */
  GGUFMILL_NO_MEMORY = 2         /* memory for intermediate results could not be allocated. Since 1.1 */
};

/* Weights of the squared errors that a search minimizes. s is the mean square of the block, x the value. Since 1.1. */
enum {
  GGUFMILL_WEIGHTS_GGML = 0,       /* those of the type's default encoder */
  GGUFMILL_WEIGHTS_QUARTER = 1,    /* importance (1 without it) times the fourth root of 2 s + x x */
  GGUFMILL_WEIGHTS_IMPORTANCE = 2, /* importance, 1 without it */
  GGUFMILL_WEIGHTS_PLAIN = 3       /* 1 */
};

/* One call: `rows` complete rows of one tensor, with `cols` elements each. A row of a type is its header, if it has one
 * (`row_header_bytes`), and its blocks; nothing is between two rows.
 *
 * The output bytes of a row must depend only on that row, `cols`, `importance`, `effort` and `weights` (and other rows
 * if `compensate` is 1): not on `rows`, the thread, earlier calls or the ISA. */
typedef struct ggufmill_call {
  /* Input. Aligned only to the elements of the source type (2 bytes for F16, 4 for F32, 1 for blocks). Never overlaps
   * dst. For encoding, the host guarantees that all values are finite. */
  const void* src;
  /* Output, aligned to the elements of the target type in the same way. The kernel must write all of it, and nothing
   * outside it. */
  void* dst;
  uint64_t rows;           /* at least 1 */
  uint64_t cols;           /* a positive multiple of the type's block elements */
  const float* importance; /* `cols` weights, all finite and non-negative, shared by all rows; or null */

  /* Since version 1.1: */

  /* sizeof(ggufmill_call) of the host. A host has at least the members of the module's minor version. A module may use
   * members of later versions if the size includes them. */
  uint32_t size;
  uint32_t effort;  /* of the encoder `search`: 1 to 3; more finds smaller errors and takes longer. Else 0 */
  uint32_t weights; /* of the encoder `search`: GGUFMILL_WEIGHTS_*. Else 0 */
  /* 1 if the encoder `search` may let the errors of a row cancel, as other rows of the call suggest. Then `src` begins
   * with the first of GGUFMILL_ROWS_TOGETHER rows of a matrix, and the bytes of a row also depend on those rows of the
   * call. Only for kernels with GGUFMILL_COMPENSATES. Else 0 */
  uint32_t compensate;
} ggufmill_call;

/* Executes one call. Must be reentrant. Must not leave an allocation behind after the call, perform I/O, throw
 * exceptions, raise signals or change the floating-point environment. Tables that do not depend on the call may be
 * built by the first one that needs them and kept for the process: calls on other threads wait for them, and the module
 * frees them when it is unloaded. Returns GGUFMILL_OK or another status. */
typedef int32_t (*ggufmill_run)(const ggufmill_call* call);

/* Formats of the fields of a type. Words have a byte order, but any value. Scales have a byte order as well, and must
 * be finite: the host checks the output of encoders and the input of copies. Since version 1.1. */
enum {
  GGUFMILL_WORD_8 = 1,
  GGUFMILL_WORD_16 = 2,
  GGUFMILL_WORD_32 = 3,
  GGUFMILL_WORD_64 = 4,
  GGUFMILL_SCALE_F16 = 16,
  GGUFMILL_SCALE_BF16 = 17,
  GGUFMILL_SCALE_F32 = 18,
  GGUFMILL_SCALE_F64 = 19,
  GGUFMILL_SCALE_E8M0 = 20, /* 0xff is NaN */
  GGUFMILL_SCALE_E4M3 = 21, /* without infinities: 0x7f and 0xff are NaN */
  GGUFMILL_SCALE_E5M2 = 22
};

/* Part that a field belongs to. */
enum { GGUFMILL_IN_BLOCK = 0, GGUFMILL_IN_ROW_HEADER = 1 };

/* `count` consecutive words or scales of one format. Since version 1.1. */
typedef struct ggufmill_field {
  uint32_t format; /* GGUFMILL_WORD_* or GGUFMILL_SCALE_* */
  uint32_t part;   /* GGUFMILL_IN_BLOCK or GGUFMILL_IN_ROW_HEADER */
  uint32_t offset; /* of the first, in bytes from the start of the part */
  uint32_t count;  /* at least 1 */
} ggufmill_field;

typedef struct ggufmill_kernel {
  uint32_t operation;      /* GGUFMILL_DECODE or GGUFMILL_ENCODE */
  uint32_t type_id;        /* as in GGUF files, or an id defined below, which GGUF files do not use */
  uint32_t block_elements; /* elements per block; the host refuses a kernel whose block differs from that of the type */
  uint32_t block_bytes;    /* bytes per block */
  uint32_t flags;
  uint32_t row_header_bytes; /* bytes in front of the blocks of each row; 0 before version 1.1 */
  const char* name;          /* name of the type, as users write it: "Q4_K" */
  ggufmill_run run;

  /* Since version 1.1: */

  /* Name of the encoder, as users write it (`encoder: NAME`): lower-case letters, digits, '-', '_'. Null for decoders
   * and for the type's default encoder, which users call `reference`. The encoder `search` looks for a smaller error
   * than the default one, and receives an effort and weights. A module must produce the bytes of the program's own
   * encoder of a type if there is one, so a module may bring a search only for its own types, or a faster one with the
   * same bytes. Any other name is the module's own. */
  const char* encoder;
  /* Words and scales of a type that the module defines, at most GGUFMILL_MAX_FIELDS; all its kernels have the same.
   * Bytes in no field are words of 8 bits. Null if the module does not describe the type: then scales are not checked,
   * and files of the other byte order are refused. Types of GGUF and those below GGUFMILL_FIRST_FOREIGN_TYPE that the
   * program knows are described by the program. */
  const ggufmill_field* fields;
  uint32_t field_count; /* 0 if `fields` is null */
  uint32_t reserved;    /* 0 */
} ggufmill_kernel;

#define GGUFMILL_MAX_FIELDS 8

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
 * elements per byte, and U2, with four; U3, with eight elements in three bytes, U5, with eight in five, and U6, with
 * four in three. The first element is in the low bits of the first byte. */
#define GGUFMILL_FIRST_SOURCE_TYPE UINT32_C(0x8000)

/* First id for types that a module defines itself. When the host loads the module, it adds the type, with the name, the
 * block, the row header and the fields of the kernel.
 *
 * Collisions: the module that is found first has a type, and each encoder that is not the program's own. Kernels of
 * another module that define the type's id or name differently, and kernels of a module of another name for the same
 * operation, type and encoder, are refused, and the report names both modules. Builds of one module for several ISAs
 * have the same name. */
#define GGUFMILL_FIRST_FOREIGN_TYPE UINT32_C(0x10000)

/* Ids that another project uses in its GGUF files, which a module of version 1.1 may define as well. The ranges have no
 * ids that GGUF files of llama.cpp use. */
#define GGUFMILL_FIRST_IK_TYPE UINT32_C(97) /* ik_llama.cpp */
#define GGUFMILL_LAST_IK_TYPE UINT32_C(511)

#ifdef __cplusplus
}
#endif

#endif
