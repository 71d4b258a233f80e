#include "stages/gguf/format.h"

#include <fmt/format.h>

namespace ggufmill::gguf {

std::string shard_path(std::string_view prefix, std::uint64_t index, std::uint64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, index + 1, count);
}

std::optional<std::string> shard_prefix(std::string_view path, std::uint64_t index, std::uint64_t count) {
  const std::string ending = shard_path("", index, count);
  if (path.size() <= ending.size() || !path.ends_with(ending)) return {};
  return std::string(path.substr(0, path.size() - ending.size()));
}

}  // namespace ggufmill::gguf
