#include "pipeline/io/input_file.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <xxhash.h>

#include <algorithm>

#include "pipeline/io/descriptor.h"
#include "pipeline/io/io_service.h"
#include "pipeline/io/memory.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/system_calls.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {
namespace {

Error cannot_open(const std::string& path, int errno_value) {
  Error error = io_error(path, "open the file", errno_value);
  if (errno_value == ENOENT || errno_value == ENOTDIR) error.code = ExitCode::kBadInput;
  return error;
}

Status check_regular(const std::string& path, const struct stat& info) {
  if (S_ISREG(info.st_mode)) return ok();
  return input_error(path, fmt::format("is {}, not a file", kind_of_mode(info.st_mode)),
                     "give a regular file: pipes and devices do not support random access");
}

constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY;

}  // namespace

std::string_view kind_of_mode(unsigned mode) {
  return S_ISREG(mode)    ? "a file"
         : S_ISDIR(mode)  ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

Result<std::shared_ptr<const InputFile>> InputFile::open(const std::string& path, IoMode mode) {
  const SystemCalls& calls = system_calls();
  if (path.find('\0') != std::string::npos) return input_error(path, "a path cannot contain a NUL character");
  struct stat info {};
  // Checked before opening, because merely opening some devices triggers actions.
  if (retry([&] { return calls.fstatat(AT_FDCWD, path.c_str(), &info, 0); }) < 0) return cannot_open(path, errno);
  BOOST_OUTCOME_TRY(check_regular(path, info));
  // Non-blocking, in case the name has been taken by a pipe in the meantime.
  Descriptor descriptor(retry([&] { return calls.openat(AT_FDCWD, path.c_str(), kReadFlags | O_NONBLOCK, 0); }));
  if (!descriptor) return cannot_open(path, errno);
  if (retry([&] { return calls.fstat(descriptor.get(), &info); }) < 0) return cannot_open(path, errno);
  BOOST_OUTCOME_TRY(check_regular(path, info));
  // With O_NONBLOCK set, io_uring returns EAGAIN even for regular files.
  if (retry([&] { return calls.set_status_flags(descriptor.get(), O_RDONLY); }) < 0) return cannot_open(path, errno);
  std::shared_ptr<InputFile> file(
      new InputFile(path, static_cast<std::uint64_t>(info.st_size), std::move(descriptor), mode));
  BOOST_OUTCOME_TRY(SourceFile identity, file->identity());
  file->description_ = std::make_shared<const SourceFile>(std::move(identity));
  file->inode_time_ = nanoseconds(info.st_ctim);
  if (mode == IoMode::kDirect) {
    BOOST_OUTCOME_TRY(file->open_direct());
  }
  return std::shared_ptr<const InputFile>(std::move(file));
}

// Opens the file of the other descriptor a second time, regardless of its current name.
Status InputFile::open_direct() {
  const std::string same = fmt::format("/proc/self/fd/{}", descriptor_.get());
  direct_ = Descriptor(retry([&] { return system_calls().openat(AT_FDCWD, same.c_str(), kReadFlags | O_DIRECT, 0); }));
  if (direct_) return ok();
  return errno == EINVAL ? no_direct_io(path_) : cannot_open(path_, errno);
}

Result<SourceFile> InputFile::identity() const {
  struct stat info {};
  if (retry([&] { return system_calls().fstat(descriptor_.get(), &info); }) < 0) return cannot_open(path_, errno);
  const auto now = static_cast<std::uint64_t>(info.st_size);
  const std::size_t bytes = std::min<std::uint64_t>({kHashedBytes, bytes_, now});
  BOOST_OUTCOME_TRY(const Buffer beginning, Buffer::allocate(std::max<std::size_t>(bytes, 1)));
  BOOST_OUTCOME_TRY(read_all({descriptor_.get(), 0, beginning.data(), bytes, bytes}, path_));
  return SourceFile{path_, now, XXH3_64bits(beginning.data(), bytes), nanoseconds(info.st_mtim)};
}

Status InputFile::check_unchanged() const {
  BOOST_OUTCOME_TRY(const SourceFile now, identity());
  if (!is_same(now, *description_)) return changed(*description_, now);
  // Bytes rewritten in place, with the modification time set back, are detected only by ctime.
  BOOST_OUTCOME_TRY(const std::int64_t inode_time, this->inode_time());
  if (inode_time == inode_time_) return ok();
  Error error = changed(*description_, now);
  error.detail = kInodeChanged;
  return error;
}

Result<std::int64_t> InputFile::inode_time() const {
  struct stat info {};
  if (retry([&] { return system_calls().fstat(descriptor_.get(), &info); }) < 0) return cannot_open(path_, errno);
  return nanoseconds(info.st_ctim);
}

Status InputFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  BOOST_OUTCOME_TRY(const Transfer transfer, begin_read(offset, into));
  BOOST_OUTCOME_TRY(read_all(transfer, path_));
  end_read(offset, into.size());
  return ok();
}

bool InputFile::read_if_cached(std::uint64_t offset, std::span<std::byte> into) const {
  const Result<Transfer> transfer = begin_read(offset, into);
  if (!transfer || mode_ == IoMode::kDirect) return false;
  Transfer left = transfer.value();
  while (left.least > 0) {
    const iovec piece{left.data, left.bytes};
    const ssize_t got = ::preadv2(descriptor_.get(), &piece, 1, static_cast<off_t>(left.offset), RWF_NOWAIT);
    if (got <= 0) return false;
    left = left.after(static_cast<std::size_t>(got));
  }
  end_read(offset, into.size());
  return true;
}

void InputFile::start_read(IoService& io, std::uint64_t offset, std::span<std::byte> into, Completion done) const {
  io.read(*this, offset, into, std::move(done));
}

Result<Transfer> InputFile::begin_read(std::uint64_t offset, std::span<std::byte> into) const {
  if (offset > bytes_ || into.size() > bytes_ - offset) return ends_early(path_, offset, into.size());
  const std::size_t before = offset % kDirectAlignment;
  if (!direct_ || into.empty() || reinterpret_cast<std::uintptr_t>(into.data()) % kDirectAlignment != before)
    return Transfer{descriptor_.get(), offset, into.data(), into.size(), into.size()};
  const std::size_t least = before + into.size();
  const std::size_t blocks = (least + kDirectAlignment - 1) / kDirectAlignment;
  return Transfer{direct_.get(), offset - before, into.data() - before, blocks * kDirectAlignment, least};
}

void InputFile::end_read(std::uint64_t offset, std::size_t bytes) const {
  if (mode_ == IoMode::kStreaming)  // drops the pages that lie entirely in the range; a hint that may be ignored
    ::posix_fadvise(descriptor_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

}  // namespace ggufmill
