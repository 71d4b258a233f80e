#pragma once
// Builds importance files for tests, valid or deliberately broken.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/importance.h"
#include "tests/support/gguf_builder.h"

namespace ggufmill {

// Returns the bytes of float32 numbers.
std::string float_bytes(const std::vector<float>& values);

// Returns one entry of a legacy file.
std::string legacy_entry(std::string_view name, std::int32_t calls, const std::vector<float>& sums);
// Returns a legacy file: the number of entries, the entries, and `tail`.
std::string legacy_importance(const std::vector<std::string>& entries, std::string_view tail = {});
// Returns the trailer of newer legacy files.
std::string legacy_tail(std::int32_t chunks, std::string_view dataset);

// Returns a GGUF importance file without entries: data sets "a.txt" and "b.txt", 7 chunks of 512.
GgufBuilder gguf_importance();
// Adds an entry with `counts.size()` parts.
void add_entry(GgufBuilder& file, const std::string& name, const std::vector<float>& sums,
               const std::vector<float>& counts);
// Adds the sums of activations of an entry, which must have been added.
void add_activations(GgufBuilder& file, const std::string& name, const std::vector<float>& sums);

// The inputs of some tensors: for each expert, vectors of correlated random numbers, as many as `tokens` says.
struct RandomInputs {
  std::vector<std::string> tensors;  // the first one names the input
  std::size_t columns = 0;
  std::vector<std::size_t> tokens{40};  // of each expert
  bool is_pooled = false;
  std::size_t dead = 0;      // number of a column that is always 0; none if it is not one of the columns
  std::size_t held_out = 0;  // held-out vectors of each expert
};
// Returns a covariance file, with diagonal blocks of `block` columns (0: all).
GgufBuilder gguf_covariance(const std::vector<RandomInputs>& inputs, std::uint32_t block, std::uint32_t seed = 1);

// Returns the weights of a matrix, read from their file.
Result<std::vector<float>> read_weights(const Importance& importance, std::uint64_t matrix);

}  // namespace ggufmill
