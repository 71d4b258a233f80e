/* Lattice kernels recognise rows whose values are, or nearly are, values of a type, as those of weights that were
 * quantized before. Only the linked-in reference has them, so this header is not installed. C11. */
#ifndef GGUFMILL_LATTICE_H
#define GGUFMILL_LATTICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
