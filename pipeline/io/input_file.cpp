#include "pipeline/io/input_file.h"

#include <sys/uio.h>

#include "pipeline/io/descriptor.h"
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
  return input_error(path, S_ISDIR(info.st_mode) ? "is a folder, not a file" : "is not a regular file",
                     "name a file on a disk: pipes and devices cannot be read at positions");
}

// io_uring takes O_NONBLOCK at its word even for regular files and answers EAGAIN.
Status set_mode(int descriptor, const std::string& path, IoMode mode) {
  const int direct = mode == IoMode::kDirect ? O_DIRECT : 0;
  if (retry([&] { return system_calls().set_status_flags(descriptor, O_RDONLY | direct); }) == 0) return ok();
  if (direct != 0 && errno == EINVAL) return no_direct_io(path);
  return cannot_open(path, errno);
}

}  // namespace

Result<std::shared_ptr<const InputFile>> InputFile::open(const std::string& path, IoMode mode) {
  const SystemCalls& calls = system_calls();
  if (path.find('\0') != std::string::npos) return input_error(path, "a path with a zero byte names no file");
  struct stat info {};
  // Looked at before it is opened, because opening alone makes some devices act.
  if (retry([&] { return calls.fstatat(AT_FDCWD, path.c_str(), &info, 0); }) < 0) return cannot_open(path, errno);
  BOOST_OUTCOME_TRY(check_regular(path, info));
  // Not blocking, in case a pipe has taken the name since.
  const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  Descriptor descriptor(retry([&] { return calls.openat(AT_FDCWD, path.c_str(), flags, 0); }));
  if (!descriptor) return cannot_open(path, errno);
  if (retry([&] { return calls.fstat(descriptor.get(), &info); }) < 0) return cannot_open(path, errno);
  BOOST_OUTCOME_TRY(check_regular(path, info));
  BOOST_OUTCOME_TRY(set_mode(descriptor.get(), path, mode));
  return std::shared_ptr<const InputFile>(
      new InputFile(path, static_cast<std::uint64_t>(info.st_size), descriptor.release(), mode));
}

InputFile::InputFile(std::string path, std::uint64_t bytes, int descriptor, IoMode mode)
    : path_(std::move(path)), bytes_(bytes), descriptor_(descriptor), mode_(mode) {}

InputFile::~InputFile() { Descriptor closed(descriptor_); }

Status InputFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  BOOST_OUTCOME_TRY(const Extent extent, begin_read(offset, into));
  BOOST_OUTCOME_TRY(read_all(extent, path_));
  end_read(offset, into.size());
  return ok();
}

bool InputFile::read_if_cached(std::uint64_t offset, std::span<std::byte> into) const {
  const Result<Extent> extent = begin_read(offset, into);
  if (!extent || mode_ == IoMode::kDirect) return false;
  Extent left = extent.value();
  while (left.least > 0) {
    const iovec piece{left.data, left.bytes};
    const ssize_t got = ::preadv2(descriptor_, &piece, 1, static_cast<off_t>(left.offset), RWF_NOWAIT);
    if (got <= 0) return false;
    left = left.after(static_cast<std::size_t>(got));
  }
  end_read(offset, into.size());
  return true;
}

Result<Extent> InputFile::begin_read(std::uint64_t offset, std::span<std::byte> into) const {
  if (offset > bytes_ || into.size() > bytes_ - offset) return ends_early(path_, offset, into.size());
  if (mode_ != IoMode::kDirect || into.empty())
    return Extent{descriptor_, offset, into.data(), into.size(), into.size()};
  const std::size_t before = offset % kDirectAlignment;
  if (reinterpret_cast<std::uintptr_t>(into.data()) % kDirectAlignment != before)
    return Error{ExitCode::kInternal, path_, "a direct read into memory that does not lie like the file", "",
                 "this is a defect of ggufmill: please report it"};
  const std::size_t least = before + into.size();
  const std::size_t blocks = (least + kDirectAlignment - 1) / kDirectAlignment;
  return Extent{descriptor_, offset - before, into.data() - before, blocks * kDirectAlignment, least};
}

void InputFile::end_read(std::uint64_t offset, std::size_t bytes) const {
  if (mode_ == IoMode::kStreaming)  // of the pages that lie wholly in it; a hint that may be ignored
    ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

}  // namespace ggufmill
