#pragma once
// Constants of the GGUF format, for reading and writing. Source: docs/gguf.md of ggml (MIT).
//
// Structure of a file: magic, version, number of tensors, number of metadata entries; the entries (key, type, value);
// the descriptions of tensors (name, dimensions, type, offset); zeros up to the alignment; the data of the tensors, at
// offsets relative to its start. Lengths, counts and dimensions have 32 bits in version 1, 64 bits in versions 2 and 3.
// Offsets always have 64 bits.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/core/metadata_keys.h"
#include "pipeline/core/model.h"

namespace ggufmill::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr std::uint32_t kNewestVersion = 3;  // the version written; 1 and 2 can be read
inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::uint32_t kMaxDimensions = 4;
inline constexpr std::size_t kMaxNameElsewhereLength = 63;  // bytes of a tensor name in llama.cpp

// Limits of this program, to withstand malicious files. The format itself limits only names.
inline constexpr std::uint64_t kLargestAlignment = 1ull << 20;
inline constexpr std::uint64_t kLargestValue = 1ull << 30;     // bytes of one string or array
inline constexpr std::uint64_t kLargestMetadata = 2ull << 30;  // bytes of all values of a file
inline constexpr std::uint64_t kMaxNameLength = 65535;         // bytes of a key or tensor name
inline constexpr int kDeepestArray = 8;                        // nesting of arrays

inline constexpr std::string_view kAlignmentKey = "general.alignment";  // uint32

// Adds a warning to a model if llama.cpp does not read names of its tensors, unless it has this warning.
void warn_of_long_names(Model& model);

inline bool is_valid_alignment(std::uint64_t alignment) {
  return alignment != 0 && (alignment & (alignment - 1)) == 0 && alignment <= kLargestAlignment;
}

// Returns the next multiple of `alignment` (a power of two); nullopt if it exceeds 2^63 - 1, the maximum size of a
// file.
inline std::optional<std::uint64_t> padded(std::uint64_t bytes, std::uint64_t alignment) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (bytes > kMax - (alignment - 1)) return {};
  return (bytes + (alignment - 1)) & ~(alignment - 1);
}

// Returns the name of a shard: NAME-00001-of-00005.gguf (llama.cpp, src/llama.cpp, MIT). `index` counts from 0.
std::string shard_path(std::string_view prefix, std::uint64_t index, std::uint64_t count);
// Returns the prefix of the path of shard `index` of `count`; nullopt if the path does not have this form.
std::optional<std::string> shard_prefix(std::string_view path, std::uint64_t index, std::uint64_t count);

}  // namespace ggufmill::gguf
