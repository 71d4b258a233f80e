#pragma once
// The figures of the GGUF format, for reading and writing. Source: docs/gguf.md of ggml (MIT).
//
// A file: magic, version, number of tensors, number of metadata entries; the entries (key, type, value); the tensors'
// descriptions (name, dimensions, type, offset); zeros up to the alignment; the tensors' data, each at its offset from
// there. Version 1 has 32-bit lengths, counts and dimensions, versions 2 and 3 have 64-bit ones; offsets are always
// of 64.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace ggufmill::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr std::uint32_t kNewestVersion = 3;  // what is written; 1 and 2 are read too
inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::uint32_t kMostDimensions = 4;
inline constexpr std::size_t kLongestNameElsewhere = 63;  // bytes of a tensor name that llama.cpp can hold

// Limits of this program, against hostile files. The format has none, but for names.
inline constexpr std::uint64_t kLargestAlignment = 1ull << 20;
inline constexpr std::uint64_t kLargestValue = 1ull << 30;     // bytes of one string or array
inline constexpr std::uint64_t kLargestMetadata = 2ull << 30;  // bytes of all values of a file
inline constexpr std::uint64_t kLongestName = 65535;           // bytes of a key or tensor name
inline constexpr int kDeepestArray = 8;                        // arrays inside arrays

inline constexpr std::string_view kAlignmentKey = "general.alignment";       // uint32
inline constexpr std::string_view kSplitNumberKey = "split.no";              // uint16, from 0
inline constexpr std::string_view kSplitCountKey = "split.count";            // uint16
inline constexpr std::string_view kSplitTensorsKey = "split.tensors.count";  // int32, of all shards together

inline bool is_valid_alignment(std::uint64_t alignment) {
  return alignment != 0 && (alignment & (alignment - 1)) == 0 && alignment <= kLargestAlignment;
}

// The next multiple of `alignment` (a power of two); nothing when that is past 2^63 - 1, the end of the largest file.
inline std::optional<std::uint64_t> padded(std::uint64_t bytes, std::uint64_t alignment) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (bytes > kMost - (alignment - 1)) return {};
  return (bytes + (alignment - 1)) & ~(alignment - 1);
}

// Names of the files of a model in several files: NAME-00001-of-00005.gguf (llama.cpp, src/llama.cpp, MIT); `index`
// from 0.
std::string shard_path(std::string_view prefix, std::uint64_t index, std::uint64_t count);
// The prefix of a path that is named as shard `index` of `count`; nothing when it is not.
std::optional<std::string> shard_prefix(std::string_view path, std::uint64_t index, std::uint64_t count);

}  // namespace ggufmill::gguf
