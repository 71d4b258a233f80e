/* Search kernels: encoders that look for better numbers in the same format than the reference encoder of a type does.
 *
 * A module that has search kernels exports a second constant, `ggufmill_searches_v1`, of type `ggufmill_search_table`.
 * It is optional, and hosts that do not know it ignore it. This header is not installed: for now, only modules that are
 * built with the program have searches. A kernel must produce the bytes of the reference's search of
 * the type, for every effort and all weights.
 *
 * C11; the only dependency is the kernel ABI. */
#ifndef GGUFMILL_SEARCH_H
#define GGUFMILL_SEARCH_H

#include "plugins/abi/ggufmill_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GGUFMILL_SEARCH_SYMBOL "ggufmill_searches_v1"

/* Weights of the squared errors. s is the mean square of the block, x the value. */
enum {
  GGUFMILL_WEIGHTS_GGML = 0,       /* those of the reference encoder */
  GGUFMILL_WEIGHTS_QUARTER = 1,    /* importance (1 without it) times the fourth root of 2 s + x x */
  GGUFMILL_WEIGHTS_IMPORTANCE = 2, /* importance, 1 without it */
  GGUFMILL_WEIGHTS_PLAIN = 3       /* 1 */
};

/* One call: `rows` as for an encoder. The bytes of a row must depend only on that row, `cols`, `importance`, `effort`
 * and `weights`. */
typedef struct ggufmill_search_call {
  ggufmill_call rows;
  uint32_t effort;  /* 1 to 3; more finds smaller errors and takes longer */
  uint32_t weights; /* GGUFMILL_WEIGHTS_* */
} ggufmill_search_call;

/* Executes one call; the rules of ggufmill_run apply. */
typedef int32_t (*ggufmill_search_run)(const ggufmill_search_call* call);

typedef struct ggufmill_search_kernel {
  uint32_t type_id;
  uint32_t reserved; /* 0 */
  ggufmill_search_run run;
} ggufmill_search_kernel;

typedef struct ggufmill_search_table {
  uint32_t struct_size; /* sizeof(ggufmill_search_table) */
  uint32_t kernel_size; /* sizeof(ggufmill_search_kernel) */
  uint64_t count;       /* number of elements in `kernels`, one for each type */
  const ggufmill_search_kernel* kernels;
} ggufmill_search_table;

/* Lattice kernels recognise rows whose values are, or nearly are, values of a type, as those of weights that were
 * quantized before. Only the linked-in reference has them. */

/* Results of a lattice kernel. */
enum {
  GGUFMILL_LATTICE_NONE = 0, /* not recognised; the contents of `row` are undefined */
  GGUFMILL_LATTICE_NEAR = 1, /* every value is within two roundings to BF16 (2^-6 of it) of one of the type */
  GGUFMILL_LATTICE_EXACT = 2 /* every value is one of the type: the row decodes to the same values */
};

/* Recognises one row of `cols` finite values, a multiple of the type's block, and writes it to `row` unless that is
 * null. The bytes of a block depend only on its values, and the result is the least of those of the blocks. */
typedef int32_t (*ggufmill_lattice_run)(const float* x, uint64_t cols, void* row);

typedef struct ggufmill_lattice_kernel {
  uint32_t type_id;
  uint32_t block_elements;
  ggufmill_lattice_run run;
} ggufmill_lattice_kernel;

typedef struct ggufmill_lattice_table {
  uint64_t count;
  const ggufmill_lattice_kernel* kernels;
} ggufmill_lattice_table;

#ifdef __cplusplus
}
#endif

#endif
