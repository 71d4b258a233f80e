#include "stages/gguf/format.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"

namespace ggufmill::gguf {

std::string shard_path(std::string_view prefix, std::uint64_t index, std::uint64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, index + 1, count);
}

std::optional<std::string> shard_prefix(std::string_view path, std::uint64_t index, std::uint64_t count) {
  const std::string ending = shard_path("", index, count);
  if (path.size() <= ending.size() || !path.ends_with(ending)) return {};
  return std::string(path.substr(0, path.size() - ending.size()));
}

void warn_of_long_names(Model& model) {
  std::size_t count = 0;
  const std::string* first = nullptr;
  for (const Tensor& tensor : model.tensors)
    if (tensor.name.size() > kMaxNameElsewhereLength && count++ == 0) first = &tensor.name;
  if (!first) return;
  std::string warning = fmt::format(
      "{} tensor name{} longer than the {} bytes that llama.cpp reads; the first is {}; the stage `rename` of "
      "a pipeline file can shorten names",
      count, count == 1 ? " is" : "s are", kMaxNameElsewhereLength, quoted_name(*first));
  if (std::ranges::find(model.warnings, warning) == model.warnings.end()) model.warnings.push_back(std::move(warning));
}

}  // namespace ggufmill::gguf
