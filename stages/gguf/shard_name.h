#pragma once
// Names of the files of a model in several files: NAME-00001-of-00005.gguf. Source: llama.cpp, src/llama.cpp (MIT).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ggufmill::gguf {

// `index` from 0.
std::string shard_path(std::string_view prefix, std::uint64_t index, std::uint64_t count);
// The prefix of a path that is named as shard `index` of `count`; nothing when it is not.
std::optional<std::string> shard_prefix(std::string_view path, std::uint64_t index, std::uint64_t count);

}  // namespace ggufmill::gguf
