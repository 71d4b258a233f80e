#pragma once
// Covariance files: importance files in GGUF that also have the correlations of the inputs of matrices
// (pipeline/core/covariance.h). Every reader of importance files can read them.
//
// In addition to the tensors and keys of an importance file, they have
//
//   covariance.version   uint32: 1
//   covariance.block     uint32: columns of the diagonal blocks that are stored; 0: one block of all columns
//   covariance.tensors   array of strings: tensors whose inputs are known
//   covariance.inputs    array of strings: for each of these, the tensor that its input is named after
//   INPUT.in_corr        F16, packed correlations, 1 set for each expert, or one for all of them
//   INPUT.in_rows        BF16, optional: held-out vectors, COLUMNS x NUMBER x EXPERTS, of text that the sums do not
//                        cover; those of an expert that got fewer are followed by zeros

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pipeline/core/covariance.h"
#include "stages/importance/importance_file.h"

namespace ggufmill {

// The data of one input. Thread-safe.
struct CovarianceInput {
  std::string owner;                 // the tensor that it is named after
  std::vector<std::string> tensors;  // all tensors that are multiplied with it, in the order of the file
  ImportanceEntry entry;             // of the owner: sums and counts
  Covariance covariance;             // without `unused` and `note`, which depend on the use
  std::shared_ptr<const ByteSource> file;

  std::uint64_t columns() const { return covariance.columns; }
  std::uint64_t experts() const { return covariance.matrices; }
  // Sets of correlations: the experts, or 1.
  std::uint64_t sets() const { return covariance.is_pooled ? 1 : covariance.matrices; }
  // Reads correlations of a set, starting at number `first`, and checks them. Blocks. The range must not exceed the
  // packed length. Fails with exit code 4 for numbers that are not correlations.
  Status read(std::uint64_t set, std::uint64_t first, std::span<float> into) const;
  // Reads sums of squares of an expert, starting at column `first`, and checks that they are finite and not negative.
  Status read_sums(std::uint64_t expert, std::uint64_t first, std::span<float> into) const;
  // Reads numbers of the held-out vectors of an expert, starting at number `first`, and checks that they are finite.
  Status read_vectors(std::uint64_t expert, std::uint64_t first, std::span<float> into) const;
};

struct CovarianceFile {
  ImportanceFile importance;
  std::uint32_t block = 0;
  std::vector<CovarianceInput> inputs;                    // in the order in which covariance.inputs names them
  std::unordered_map<std::string, std::size_t> places{};  // for each tensor, that of its input

  // Returns null for a tensor whose input is not known.
  const CovarianceInput* input_of(std::string_view tensor) const;
};

// Returns true if the header of an importance file declares covariances.
bool has_covariance(const Model& importance);
// Returns true if a file is a GGUF file whose header declares covariances.
Result<bool> is_covariance_file(const std::string& path, const ModelOpener& open);

// Reads names, shapes and positions, but none of the numbers: memory depends only on the number of names. Fails with
// exit code 4 if the file has no covariances, or is not valid.
Result<CovarianceFile> open_covariance(const std::string& path, const ModelOpener& open);

// Checks that the tensors with one input have the same sums and counts. Reads them, a few at a time. Fails with exit
// code 4.
Status check_shared_sums(const CovarianceFile& file);
// Reads all numbers of a file and checks them, a few at a time. Fails with exit code 4.
Status check_numbers(const CovarianceFile& file);

}  // namespace ggufmill
