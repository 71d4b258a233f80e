/* Functions that choose the levels of encoded rows with the covariance of the vectors that the rows are multiplied
 * with. Only the linked-in reference has them, so this header is not installed. C11.
 *
 * Let w be a row, y its decoded encoding, e = w - y, and H the covariance. The squared error of the row's products is
 * e H e^T. Columns are divided into blocks that are not correlated with each other; what follows is said of one block.
 *
 * A matrix of n columns is stored as square tiles of GGUFMILL_METRIC_TILE columns. Of the tiles (I, J), where I counts
 * rows and J columns of tiles, those with I <= J are stored, in the order (0, 0), (0, 1), (1, 1), (0, 2), ...: tile
 * (I, J) has the number J (J + 1) / 2 + I. Element (i, j) of a tile is number j * GGUFMILL_METRIC_TILE + i of its
 * elements. Elements beyond the last column are 0. */
#ifndef GGUFMILL_COVARIANCE_H
#define GGUFMILL_COVARIANCE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUFMILL_METRIC_TILE 64

/* H and its factor A: H = A A^T, where A is upper triangular. */
typedef struct ggufmill_metric {
  uint64_t columns;
  uint64_t block;         /* columns of a block, at least 1; the last block may have fewer */
  const float* tiles;     /* for each block: the tiles of A, then those of H. A has zeros below its diagonal */
  const float* inverse_a; /* 1 / A_ii of each column */
  const float* inverse_h; /* 1 / H_ii of each column */
} ggufmill_metric;

/* Rows are worked on in groups: intermediate results need memory for a multiple of this number of rows. */
#define GGUFMILL_LEVEL_ROWS 16
/* Bytes of that memory for each column of a row: 4 numbers of 32 bits, and 2 for each 16 columns. */
#define GGUFMILL_LEVEL_BYTES_PER_COLUMN 17

/* One call: encoded rows, whose levels are replaced. Their other bits remain. */
typedef struct ggufmill_level_call {
  uint32_t type_id;
  uint32_t sweeps; /* how often every level is reconsidered after the first pass */
  uint64_t rows, cols;
  const float* weights; /* the values of the rows */
  void* encoded;        /* the rows */
  const ggufmill_metric* metric;
  void* memory; /* GGUFMILL_LEVEL_BYTES_PER_COLUMN * cols bytes for each row, for a multiple of GGUFMILL_LEVEL_ROWS
                 * rows; aligned to 64 bytes */
} ggufmill_level_call;

/* One call: the squared errors of products of rows, summed over some vectors. */
typedef struct ggufmill_loss_call {
  uint64_t rows, cols;  /* rows: at most GGUFMILL_LEVEL_ROWS */
  const float* weights; /* the values of the rows */
  const float* decoded; /* the values that replace them */
  uint64_t count;
  const float* vectors; /* `count` of them, of `cols` numbers each */
  void* memory;         /* 4 * GGUFMILL_LEVEL_ROWS * cols bytes, aligned to 64 bytes */
  double* losses;       /* of each row */
} ggufmill_loss_call;

/* The functions for one instruction set. All write the same bytes. Thread-safe. */
typedef struct ggufmill_covariance_kernels {
  const char* isa;
  /* Returns 0, or 1 if the type has no levels. The bytes of a row depend only on that row and the metric. */
  int32_t (*choose_levels)(const ggufmill_level_call* call);
  /* Each product is a sum in single precision in the order of the columns; their squares are added in the order of the
   * vectors. */
  void (*losses)(const ggufmill_loss_call* call);
  /* Parts of the factorization, on tiles of 64-bit numbers. Tile (I, J), initially H, becomes A, for J from the last
   * column of tiles to the first: `update` with each K from the last to J + 1, then `diagonal` of (J, J), then `solve`
   * of each (I, J) above it. */
  void (*update)(double* tile, const double* a_ik, const double* a_jk);
  /* `columns`: those that exist. Returns 0, or 1 if the matrix is not positive definite. */
  int32_t (*diagonal)(double* tile, uint64_t columns);
  void (*solve)(double* tile, const double* diagonal, uint64_t columns);
} ggufmill_covariance_kernels;

typedef struct ggufmill_covariance_table {
  uint64_t count; /* the first is for every machine, the others for better ones, worst first */
  const ggufmill_covariance_kernels* kernels;
} ggufmill_covariance_table;

#ifdef __cplusplus
}
#endif

#endif
