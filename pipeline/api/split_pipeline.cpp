#include "pipeline/api/split_pipeline.h"

#include <fmt/format.h>

#include "pipeline/config/yaml_words.h"

namespace ggufmill {

std::string split_pipeline(const SplitOptions& options) {
  const std::string limit = options.max_size.empty() ? fmt::format("shard_tensors: {}", options.max_tensors)
                                                     : "shard_size: " + yaml_quoted(options.max_size);
  return fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs:\n  - gguf: {{path: {}, {}{}}}\n",
                     yaml_quoted(options.input), yaml_quoted(options.output + ".gguf"), limit,
                     options.no_tensor_first_split ? ", metadata_shard: true" : "");
}

std::string merge_pipeline(const std::string& input, const std::string& output, bool clean) {
  return fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs: [gguf: {{path: {}{}}}]\n", yaml_quoted(input),
                     yaml_quoted(output), clean ? "" : ", shards: merged");
}

}  // namespace ggufmill
