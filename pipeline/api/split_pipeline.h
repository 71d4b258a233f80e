#pragma once
// The arguments of `ggufmill split` and `ggufmill merge`, which are those of llama-gguf-split, and the equivalent
// pipeline files.

#include <cstdint>
#include <string>

namespace ggufmill {

struct SplitOptions {
  std::string input, output;        // `output`: name of the shards without "-00001-of-0000N.gguf"
  std::string max_size{};           // of tensor data per shard: "20G", "512MiB"; empty: max_tensors is used
  std::uint64_t max_tensors = 128;  // per shard
  bool no_tensor_first_split = false;
};

std::string split_pipeline(const SplitOptions& options);

// `clean`: omit the keys split.*.
std::string merge_pipeline(const std::string& input, const std::string& output, bool clean);

}  // namespace ggufmill
