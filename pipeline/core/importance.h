#pragma once
// Importance of a tensor's columns: the source ranges from which the weights are computed. Nothing is read here.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/expression.h"

namespace ggufmill {

// The rules by which the numbers of one file count towards weights: alone, or added to those of others.
struct ImportanceScale {
  std::int32_t calls = 0;  // files without counts (legacy): divisor of all sums, if greater than 0
  double weight = 1;       // factor for sums and counts; finite and greater than 0
  // Files without counts that are added to others: tokens per call, the factor for their averages. 0: not added.
  std::uint32_t chunk_size = 0;

  // True if the numbers are used as llama-quantize uses those of a single file.
  bool is_alone() const { return weight == 1 && chunk_size == 0; }
};

// Sums of squared activations, one for each column of all matrices, and their divisors, in one file.
struct ImportanceShare {
  Extent sums;    // F32
  Extent counts;  // F32: tokens seen, one per equal part of the sums; empty for legacy files
  ImportanceScale scale{};
};

// The numbers of a share for a contiguous run of an entry, in the host's byte order: sums, and the counts of the parts
// that contain them.
struct ImportanceNumbers {
  std::vector<float> sums, counts;
};

// The weights of the columns of `matrices` matrices. Matrices are counted along dims[2] of the tensor; all slices along
// dims[3] share them.
struct Importance {
  std::string name;                     // name of the entry, for messages
  std::vector<ImportanceShare> shares;  // added up in this order; may be empty if all matrices have substitutes
  std::uint64_t columns = 0, matrices = 0;
  // Weights of `columns` columns for the matrices listed in `substituted`, in ascending order, whose own numbers are
  // not used. Null if there are none.
  std::shared_ptr<const std::vector<float>> substitute{};
  std::vector<std::uint64_t> substituted{};
  std::string fingerprint;  // hash of all weights; part of the identity of a plan
  std::string note{};       // where substitutes come from, for `plan`; empty if there are none
  // Tokens that each matrix saw; empty if its entry does not count them for each one.
  std::vector<std::int64_t> tokens{};

  // The ranges of one share from which the weights of a matrix are computed. If `counts` has no bytes, no counts are
  // needed.
  struct Ranges {
    Extent sums, counts;
  };
  bool is_substituted(std::uint64_t matrix) const;
  // Returns the ranges for matrix `matrix` (0 <= matrix < dims[2] * dims[3]), one element for each share; none if the
  // matrix has a substitute.
  std::vector<Ranges> ranges(std::uint64_t matrix) const;
  // Returns the same regardless of substitutes.
  std::vector<Ranges> own_ranges(std::uint64_t matrix) const;
  // Computes the weights of a matrix from the numbers of its ranges, which are consumed. Fails with exit code 4 if a
  // count or weight is not finite or a weight is negative.
  Result<std::vector<float>> to_weights(std::uint64_t matrix, std::vector<ImportanceNumbers>&& numbers) const;
};

// A share of an entry for the functions below.
struct ImportanceRun {
  const std::string& path;  // for messages
  ImportanceScale scale;
  std::uint64_t parts;  // number of counts of the entire entry; 0: legacy
};

// Returns the number of tokens that a share adds to a part for which its file states `count`: rounded, because counts
// are integers stored as floats. Fails with exit code 4 for a number that is not a count.
Result<std::int64_t> counted(const ImportanceRun& run, const std::string& name, float count);

// Adds the sums of a share to `into`, in single precision. `sums` has as many numbers.
void add_sums(const ImportanceScale& scale, std::span<const float> sums, std::span<float> into);

// Computes weights for any contiguous run of an entry's numbers. `runs[i]` describes numbers[i], whose sums start at
// number `first` of `size` in total. A share that is alone gives exactly the float32 numbers of the reference
// (llama.cpp, tools/quantize/quantize.cpp, load_imatrix); several give those of the file that merging them would
// write. A part that saw no tokens has weights of 1. At least one share.
Result<std::vector<float>> to_weights(const std::string& name, std::uint64_t size, std::span<const ImportanceRun> runs,
                                      std::uint64_t first, std::vector<ImportanceNumbers>&& numbers);

}  // namespace ggufmill
