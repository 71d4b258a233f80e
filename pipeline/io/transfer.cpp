#include "pipeline/io/transfer.h"

#include <fmt/format.h>

#include "pipeline/io/system_calls.h"

namespace ggufmill {

Status read_all(int descriptor, const std::string& path, std::uint64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got =
        retry([&] { return system_calls().pread(descriptor, into.data(), into.size(), static_cast<off_t>(offset)); });
    if (got < 0) return read_failed(path, offset, into.size(), errno);
    if (got == 0) return ends_early(path, offset, into.size());
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return ok();
}

Status write_all(int descriptor, const std::string& path, std::uint64_t offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ssize_t put =
        retry([&] { return system_calls().pwrite(descriptor, from.data(), from.size(), static_cast<off_t>(offset)); });
    if (put < 0) return write_failed(path, offset, from.size(), errno);
    if (put == 0) return write_failed(path, offset, from.size(), EIO);  // would be tried for ever
    from = from.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return ok();
}

Error ends_early(const std::string& path, std::uint64_t offset, std::uint64_t bytes) {
  return input_error(path, fmt::format("the file ends before the {} bytes at byte {:#x}", bytes, offset),
                     "it is cut short, or something has changed it since it was opened");
}

Error read_failed(const std::string& path, std::uint64_t offset, std::uint64_t bytes, int errno_value) {
  return io_error(path, fmt::format("read {} bytes at byte {:#x}", bytes, offset), errno_value);
}

Error write_failed(const std::string& path, std::uint64_t offset, std::uint64_t bytes, int errno_value) {
  return io_error(path, fmt::format("write {} bytes at byte {:#x}", bytes, offset), errno_value);
}

}  // namespace ggufmill
