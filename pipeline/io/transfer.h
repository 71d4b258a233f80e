#pragma once
// Whole reads and writes at a position, and the errors of both. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "pipeline/core/error.h"

namespace ggufmill {

// Blocking; go on after EINTR and short transfers until all is done. `path` is for messages.
Status read_all(int descriptor, const std::string& path, std::uint64_t offset, std::span<std::byte> into);
Status write_all(int descriptor, const std::string& path, std::uint64_t offset, std::span<const std::byte> from);

// `bytes` at `offset` were wanted of a file that ends before (exit code 4).
Error ends_early(const std::string& path, std::uint64_t offset, std::uint64_t bytes);
// Exit code 6.
Error read_failed(const std::string& path, std::uint64_t offset, std::uint64_t bytes, int errno_value);
Error write_failed(const std::string& path, std::uint64_t offset, std::uint64_t bytes, int errno_value);

}  // namespace ggufmill
