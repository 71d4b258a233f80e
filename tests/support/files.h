#pragma once
// Small files for tests.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/io/platform/files.h"

namespace ggufmill {

// These functions throw std::runtime_error on failure.
void write_text(const std::string& path, std::string_view text);
std::string read_text(const std::string& path);
FileStatus status_of(const std::string& path, Links links = Links::kFollow);
// Waits until a file that is changed now gets a later time than `path` has: times have the granularity of the kernel's
// clock. Uses the file PATH.clock meanwhile.
void wait_for_later_time(const std::string& path);
// Returns the names in a folder, including hidden ones, sorted.
std::vector<std::string> names_in(const std::string& folder);

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace ggufmill
