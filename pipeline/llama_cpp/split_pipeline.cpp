#include "pipeline/llama_cpp/split_pipeline.h"

#include <fmt/format.h>

#include "pipeline/config/bound_fields.h"
#include "pipeline/config/yaml_words.h"

namespace ggufmill {

std::span<const Argument<SplitOptions>> split_arguments() {
  using Split = SplitOptions;
  static const Argument<Split> arguments[] = {
      {"split-max-size", &Split::max_size, "maximum bytes of tensor data per shard: 300M, 20G, 512MiB"},
      {"split-max-tensors", &Split::max_tensors, "maximum number of tensors per shard"},
      {"no-tensor-first-split", &Split::no_tensor_first_split, "write only the metadata to the first shard"},
  };
  return arguments;
}

Result<std::string> split_pipeline(const SplitOptions& options) {
  if (options.max_size && options.max_tensors)
    return usage_error("--split-max-size and --split-max-tensors cannot be used together", "omit one of them");
  if (options.max_tensors) {
    BOOST_OUTCOME_TRY(parse_option("--split-max-tensors", integer().at_least(1), std::to_string(*options.max_tensors)));
  }
  std::string limit = fmt::format("shard_tensors: {}", options.max_tensors.value_or(128));
  if (options.max_size) {
    BOOST_OUTCOME_TRY(parse_option("--split-max-size", bytes().at_least(1), *options.max_size));
    limit = "shard_size: " + yaml_quoted(*options.max_size);
  }
  return fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs:\n  - gguf: {{path: {}, {}{}}}\n",
                     yaml_quoted(options.input), yaml_quoted(options.output + ".gguf"), limit,
                     options.no_tensor_first_split ? ", metadata_shard: true" : "");
}

std::string merge_pipeline(const std::string& input, const std::string& output, bool clean) {
  return fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs: [gguf: {{path: {}{}}}]\n", yaml_quoted(input),
                     yaml_quoted(output), clean ? "" : ", shards: merged");
}

}  // namespace ggufmill
