#include "pipeline/io/input_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "pipeline/io/io_service.h"
#include "pipeline/io/memory.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {
namespace {

Error cannot_open(const std::string& path, int errno_value) {
  Error error = io_error(path, "open the file", errno_value);
  if (errno_value == ENOENT || errno_value == ENOTDIR) error.code = ExitCode::kBadInput;
  error.unread = path;
  return error;
}

Status check_regular(const std::string& path, const FileStatus& info) {
  if (info.is_file()) return ok();
  Error error = input_error(path, fmt::format("is {}, not a file", name_of(info.kind)),
                            "give a regular file: pipes and devices do not support random access");
  error.unread = path;
  return error;
}

// The innermost OpenedFiles of this thread.
thread_local OpenedFiles* collecting = nullptr;

}  // namespace

OpenedFiles::OpenedFiles() : outer_(collecting) { collecting = this; }
OpenedFiles::~OpenedFiles() { collecting = outer_; }

void OpenedFiles::add(const std::string& path) {
  for (OpenedFiles* each = collecting; each; each = each->outer_)
    if (std::ranges::count(each->paths_, path) == 0) each->paths_.push_back(path);
}

std::string_view name_of(FileStatus::Kind kind) {
  using Kind = FileStatus::Kind;
  return kind == Kind::kFile     ? "a file"
         : kind == Kind::kFolder ? "a folder"
         : kind == Kind::kPipe   ? "a pipe"
         : kind == Kind::kSocket ? "a socket"
                                 : "a device";
}

Result<std::shared_ptr<const InputFile>> InputFile::open(const std::string& path, IoMode mode) {
  if (path.find('\0') != std::string::npos) return input_error(path, "a path cannot contain a NUL character");
  FileStatus info;
  // Checked before opening, because merely opening some devices triggers actions.
  if (!get_status(kCurrentFolder, path, Links::kFollow, info)) return cannot_open(path, errno);
  BOOST_OUTCOME_TRY(check_regular(path, info));
  // The name may have been taken by a pipe in the meantime.
  Descriptor descriptor = open_file(kCurrentFolder, path, kOpenRead | kOpenNoWaiting);
  if (!descriptor) return cannot_open(path, errno);
  if (!get_status(descriptor.get(), info)) return cannot_open(path, errno);
  BOOST_OUTCOME_TRY(check_regular(path, info));
  if (retry([&] { return system_calls().set_waiting(descriptor.get()); }) < 0) return cannot_open(path, errno);
  std::shared_ptr<InputFile> file(new InputFile(path, info.bytes, std::move(descriptor), mode));
  BOOST_OUTCOME_TRY(SourceFile identity, file->identity());
  file->description_ = std::make_shared<const SourceFile>(std::move(identity));
  file->inode_time_ = info.changed;
  if (mode == IoMode::kDirect) {
    BOOST_OUTCOME_TRY(file->open_direct());
  }
  OpenedFiles::add(path);
  return std::shared_ptr<const InputFile>(std::move(file));
}

Status InputFile::open_direct() {
  direct_ = Descriptor(retry([&] { return system_calls().reopen_direct(descriptor_.get(), kOpenRead); }));
  if (direct_) return ok();
  return errno == EINVAL ? no_direct_io(path_) : cannot_open(path_, errno);
}

Result<SourceFile> InputFile::identity() const {
  FileStatus info;
  if (!get_status(descriptor_.get(), info)) return cannot_open(path_, errno);
  const std::uint64_t now = info.bytes;
  const std::size_t bytes = std::min<std::uint64_t>({kHashedBytes, bytes_, now});
  BOOST_OUTCOME_TRY(const Buffer beginning, Buffer::allocate(std::max<std::size_t>(bytes, 1)));
  BOOST_OUTCOME_TRY(read_all({descriptor_.get(), 0, beginning.data(), bytes, bytes}, path_));
  return SourceFile{path_, now, XXH3_64bits(beginning.data(), bytes), info.modified};
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
  FileStatus info;
  if (!get_status(descriptor_.get(), info)) return cannot_open(path_, errno);
  return info.changed;
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
    const std::int64_t got = read_cached(descriptor_.get(), left.data, left.bytes, left.offset);
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
  if (mode_ == IoMode::kStreaming) drop_from_cache(descriptor_.get(), offset, bytes);
}

}  // namespace ggufmill
