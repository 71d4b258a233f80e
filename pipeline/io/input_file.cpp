#include "pipeline/io/input_file.h"

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

}  // namespace

Result<std::shared_ptr<const InputFile>> InputFile::open(const std::string& path) {
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
  // io_uring takes O_NONBLOCK at its word even for regular files and answers EAGAIN.
  if (retry([&] { return calls.set_status_flags(descriptor.get(), O_RDONLY); }) < 0) return cannot_open(path, errno);
  return std::shared_ptr<const InputFile>(
      new InputFile(path, static_cast<std::uint64_t>(info.st_size), descriptor.release()));
}

InputFile::InputFile(std::string path, std::uint64_t bytes, int descriptor)
    : path_(std::move(path)), bytes_(bytes), descriptor_(descriptor) {}

InputFile::~InputFile() { Descriptor closed(descriptor_); }

Status InputFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  BOOST_OUTCOME_TRY(check(offset, into.size()));
  return read_all(descriptor_, path_, offset, into);
}

Status InputFile::check(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset) return ends_early(path_, offset, bytes);
  return ok();
}

}  // namespace ggufmill
