#include "pipeline/io/transfer.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/io/platform/files.h"

namespace ggufmill {

Transfer Transfer::after(std::size_t done) const {
  return {descriptor, offset + done, data + done, bytes - done, least - std::min(least, done)};
}

Status read_all(Transfer transfer, const std::string& path) {
  while (transfer.least > 0) {
    const std::int64_t got =
        retry([&] { return system_calls().read(transfer.descriptor, transfer.data, transfer.bytes, transfer.offset); });
    if (got < 0) return read_failed(path, transfer.offset, transfer.least, errno);
    if (got == 0) return ends_early(path, transfer.offset, transfer.least);
    transfer = transfer.after(static_cast<std::size_t>(got));
  }
  return ok();
}

Status write_all(Transfer transfer, const std::string& path) {
  while (transfer.least > 0) {
    const std::int64_t put = retry(
        [&] { return system_calls().write(transfer.descriptor, transfer.data, transfer.bytes, transfer.offset); });
    if (put < 0) return write_failed(path, transfer.offset, transfer.least, errno);
    if (put == 0) return write_failed(path, transfer.offset, transfer.least, EIO);  // would be retried forever
    transfer = transfer.after(static_cast<std::size_t>(put));
  }
  return ok();
}

Status write_all(int descriptor, const std::string& path, std::uint64_t offset, std::span<const std::byte> from) {
  return write_all({descriptor, offset, const_cast<std::byte*>(from.data()), from.size(), from.size()}, path);
}

Error ends_early(const std::string& path, std::uint64_t offset, std::uint64_t bytes) {
  return input_error(path, fmt::format("the file ends before the {} bytes at byte {:#x}", bytes, offset),
                     "it is truncated, or was changed since it was opened");
}

Error read_failed(const std::string& path, std::uint64_t offset, std::uint64_t bytes, int errno_value) {
  return io_error(path, fmt::format("read {} bytes at byte {:#x}", bytes, offset), errno_value);
}

Error write_failed(const std::string& path, std::uint64_t offset, std::uint64_t bytes, int errno_value) {
  return io_error(path, fmt::format("write {} bytes at byte {:#x}", bytes, offset), errno_value);
}

Error no_direct_io(const std::string& path) {
  Error error = io_error(path, "use direct I/O (O_DIRECT)", EINVAL);
  error.detail = "the file system does not support it";
  error.help = "set limits.io to streaming, which also keeps the page cache free";
  return error;
}

Status WriteTarget::write(std::uint64_t offset, std::span<const std::byte> from) {
  BOOST_OUTCOME_TRY(const Transfer transfer, begin_write(offset, from));
  BOOST_OUTCOME_TRY(write_all(transfer, path()));
  end_write(offset, from.size());
  return ok();
}

}  // namespace ggufmill
