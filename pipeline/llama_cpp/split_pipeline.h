#pragma once
// The arguments of `ggufmill split` and `ggufmill merge`, which are those of llama-gguf-split, and the equivalent
// pipeline files.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/llama_cpp/arguments.h"

namespace ggufmill {

struct SplitOptions {
  std::string input, output;                   // `output`: name of the shards without "-00001-of-0000N.gguf"
  std::optional<std::string> max_size{};       // of tensor data per shard: "20G", "512MiB"
  std::optional<std::uint64_t> max_tensors{};  // per shard; 128 if neither is given
  bool no_tensor_first_split = false;
};

// Returns the arguments of `ggufmill split` that set members of the options.
std::span<const Argument<SplitOptions>> split_arguments();

// Fails with exit code 2 if both limits are given, or the size cannot be parsed.
Result<std::string> split_pipeline(const SplitOptions& options);

// `clean`: omit the keys split.*.
std::string merge_pipeline(const std::string& input, const std::string& output, bool clean);

}  // namespace ggufmill
