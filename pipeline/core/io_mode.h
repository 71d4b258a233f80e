#pragma once
// How files are read and written.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ggufmill {

enum class IoMode {
  kCached,     // through the page cache, where everything stays as long as the system likes
  kStreaming,  // through the page cache; what was read or written once is dropped behind
  kDirect,     // past the page cache (O_DIRECT), but for the ragged ends of writes
};

// "cached", "streaming", "direct", in the order of the enumeration.
std::span<const std::string> io_mode_names();
std::optional<IoMode> io_mode_named(std::string_view name);

// What O_DIRECT asks of offsets, sizes and memory addresses: the greatest of what common disks and file systems ask.
inline constexpr std::size_t kDirectAlignment = 4096;

}  // namespace ggufmill
