#include "pipeline/llama_cpp/split_pipeline.h"

#include <fmt/format.h>

#include "pipeline/config/yaml_words.h"

namespace ggufmill {

std::string split_pipeline(const SplitOptions& options) {
  const std::string limit = options.split_max_size
                                ? "shard_size: " + yaml_quoted(*options.split_max_size)
                                : fmt::format("shard_tensors: {}", options.split_max_tensors.value_or(128));
  return fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs:\n  - gguf: {{path: {}, {}{}}}\n",
                     yaml_quoted(options.input), yaml_quoted(options.output + ".gguf"), limit,
                     options.no_tensor_first_split ? ", metadata_shard: true" : "");
}

std::string merge_pipeline(const std::string& input, const std::string& output, bool clean) {
  return fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs: [gguf: {{path: {}{}}}]\n", yaml_quoted(input),
                     yaml_quoted(output), clean ? "" : ", shards: merged");
}

}  // namespace ggufmill
