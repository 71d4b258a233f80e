#pragma once
// The covariance of the inputs of a matrix: the sums over tokens of x_i x_j, where x is the vector that the matrix is
// multiplied with. The diagonal are the sums of an importance file; the rest is stored as correlations,
//
//   r_ij = S_ij / sqrt(S_ii S_jj).
//
// With it can come held-out vectors: some inputs x, as BF16 numbers, of text that the sums do not cover, of which the
// shorter ones are multiplied so that the squares of all stand for those of that text. They show whether levels that
// were chosen with the covariance are better on other text than its own.
//
// Correlations are packed as F16 numbers: diagonal block after diagonal block of `block` columns (the last may have
// fewer), and of each block the elements above its diagonal, row after row. Elements outside the blocks are 0. Here is
// where a file has them; nothing is read.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/encoder.h"
#include "pipeline/core/expression.h"

namespace ggufmill {

// Columns [first, first + count) that are correlated with each other, and the place of their first correlation among
// all of the matrix.
struct CorrelatedColumns {
  std::uint64_t first = 0, count = 0, packed = 0;
};

// The packing of correlations of `columns` columns. `block` 0 stands for one block of all columns.
class CorrelationPacking {
 public:
  CorrelationPacking(std::uint64_t columns, std::uint64_t block);

  // Returns the number of correlations; nothing if it exceeds 64 bits, or their bytes do.
  std::optional<std::uint64_t> length() const;
  std::uint64_t columns() const { return columns_; }
  // Columns of a block, at least 1; the last may have fewer.
  std::uint64_t block() const { return block_; }
  std::uint64_t blocks() const { return (columns_ + block_ - 1) / block_; }
  // Requires that length() has a value.
  CorrelatedColumns columns_of(std::uint64_t block) const;
  // Returns the place of the first correlation of row `row` of a block of `count` columns, which has those with its
  // columns row + 1 to count - 1, relative to the block.
  static std::uint64_t row_start(std::uint64_t count, std::uint64_t row);

 private:
  std::uint64_t columns_, block_;
};

// The covariances of the inputs of `matrices` matrices, which are counted along dims[2] of the tensor; all slices along
// dims[3] share them.
struct Covariance {
  std::string name;     // of the tensor that the file names the input after, for messages
  Extent sums;          // F32: S_ii of all columns, for each matrix
  Extent correlations;  // F16: for each matrix, or once for all of them
  std::uint64_t columns = 0, matrices = 0, block = 0;
  bool is_pooled = false;               // one set of correlations for all matrices
  std::vector<std::uint64_t> unused{};  // matrices without a usable covariance, in ascending order
  std::string note{};                   // why these have none, for `plan`; empty if there are none
  Extent vectors{};                     // BF16: held-out vectors of each matrix
  std::uint64_t held_out = 0;           // their number for each matrix, at most kMaxHeldOut; the last may be zeros

  CorrelationPacking packing() const { return {columns, block}; }
  // Return the matrix's own part; `matrix` may count slices along dims[3], too.
  bool is_used(std::uint64_t matrix) const;
  Extent sums_of(std::uint64_t matrix) const;
  Extent correlations_of(std::uint64_t matrix) const;
  Extent vectors_of(std::uint64_t matrix) const;
  // Returns text that is equal for covariances of the same input: files, places and packing.
  std::string key() const;
  // Returns the bytes of memory that levels of one matrix are chosen with; saturates near 2^64. See graph/metrics.h.
  std::uint64_t metric_bytes() const;
  // Returns the part of it for held-out vectors, and for the trial that chooses the shrinkage; 0 if there are none.
  std::uint64_t vector_bytes() const;
  std::uint64_t trial_bytes() const;
  // Returns an error about the number `value` at number `place` of the correlations of a matrix.
  Error bad_correlation(std::uint64_t matrix, std::uint64_t place, float value) const;
  Error bad_sum(std::uint64_t matrix, std::uint64_t column, float value) const;
  // Likewise about a number of the held-out vectors.
  Error bad_vector(std::uint64_t matrix, std::uint64_t place, float value) const;
};

// The greatest number of held-out vectors of a matrix.
inline constexpr std::uint64_t kMaxHeldOut = 1024;

// Encoder::shrink where the shrinkage is chosen for each matrix, with held-out vectors: one of kShrinks, or the
// covariance is not used. Without such vectors, it is kUsualShrink.
inline constexpr double kChosenShrink = -1, kUsualShrink = 0.7;
inline constexpr double kShrinks[] = {0.3, 0.5, 0.7, 0.85};
// Rows of the trial that chooses it.
inline constexpr std::uint64_t kTrialRows = 64;

// True if the encoder chooses the shrinkage, and then for some rows at a time whether the covariance is used.
inline bool chooses_shrink(const Encoder& encoder) { return encoder.is_covariance() && encoder.shrink < 0; }

// As encoder_for() of core/encoder.h, for a tensor with this covariance, or null.
Encoder encoder_for(const Encoder& wanted, const TypeInfo& type, bool importance, const Covariance* covariance);

// Covariances are kept in memory as square tiles of this number of columns.
inline constexpr std::uint64_t kMetricTile = 64;
// While levels are chosen, rows need memory for a multiple of this number of rows, and this number of bytes per column
// of each.
inline constexpr std::uint64_t kLevelRows = 16, kLevelBytesPerColumn = 17;

// Decodes correlations, in the host's byte order. Returns the index of the first that is NaN or greater than 1 in
// magnitude; their number if all are valid.
std::size_t decode_correlations(std::span<const std::uint16_t> halves, std::span<float> into);
// Decodes numbers of held-out vectors, in the host's byte order. Returns the index of the first that is not finite;
// their number if all are.
std::size_t decode_vectors(std::span<const std::uint16_t> numbers, std::span<float> into);
// Returns the nearest F16 number of a correlation from -1 to 1; of two, the even one.
std::uint16_t half_of_correlation(double correlation);

}  // namespace ggufmill
