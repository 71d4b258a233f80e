#pragma once
// I/O modes for reading and writing files.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ggufmill {

enum class IoMode {
  kCached,     // through the page cache, where data stays as long as the kernel keeps it
  kStreaming,  // through the page cache; data is dropped from it after use
  kDirect,     // bypasses the page cache (O_DIRECT), except for the unaligned ends of writes
};

// Names of the modes ("cached", "streaming", "direct"), in the order of the enumeration.
std::span<const std::string> io_mode_names();
std::optional<IoMode> io_mode_named(std::string_view name);

// Alignment of offsets, sizes and memory addresses for O_DIRECT: the largest that common disks and file systems
// require.
inline constexpr std::size_t kDirectAlignment = 4096;

}  // namespace ggufmill
