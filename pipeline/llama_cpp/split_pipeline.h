#pragma once
// The arguments of `ggufmill split` and `ggufmill merge`, which are those of llama-gguf-split, and the equivalent
// pipeline files.

#include <cstdint>
#include <optional>
#include <string>

namespace ggufmill {

struct SplitOptions {
  std::string input{}, output{};                     // `output`: name of the shards without "-00001-of-0000N.gguf"
  std::optional<std::string> split_max_size{};       // of tensor data per shard: "20G", "512MiB"
  std::optional<std::uint64_t> split_max_tensors{};  // per shard; 128 if neither is given
  bool no_tensor_first_split = false;
};

// At most one of the limits is given.
std::string split_pipeline(const SplitOptions& options);

// `clean`: omit the keys split.*.
std::string merge_pipeline(const std::string& input, const std::string& output, bool clean);

}  // namespace ggufmill
