#include "pipeline/io/temporary_file.h"

#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <random>

#include "pipeline/core/text.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/system_calls.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {
namespace {

constexpr std::size_t kMaxNameLength = 255;  // NAME_MAX of all common file systems
constexpr std::size_t kRandomLetters = 6;

// A long name is truncated between UTF-8 characters, and a hash of the full name is appended, so that two names with
// the same beginning differ.
std::string temporary_name(const std::string& name, const std::string& identity) {
  const std::size_t room = kMaxNameLength - 1 - kTemporaryMark.size() - identity.size();
  if (name.size() <= room) return "." + name + std::string(kTemporaryMark) + identity;
  const std::string hash = fmt::format("~{:016x}", XXH3_64bits(name.data(), name.size()));
  std::size_t kept = room - hash.size();
  while (kept > 0 && (name[kept] & 0xc0) == 0x80) --kept;
  return "." + name.substr(0, kept) + hash + std::string(kTemporaryMark) + identity;
}

// No two characters differ in case only.
std::string random_identity() {
  std::string letters;
  std::random_device random;
  for (std::size_t i = 0; i < kRandomLetters; ++i) letters += "abcdefghijklmnopqrstuvwxyz0123456789"[random() % 36];
  return letters;
}

// Number of attempts to create a file under a name that may exist; an attempt is repeated if the existing file has just
// disappeared.
constexpr int kMaxAttempts = 100;

// Returns true if nobody else has locked the open file, or if the file system does not support locks.
bool try_lock(int descriptor) { return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

// Returns the permissions that the process's umask removes from new files.
mode_t umask_now() {
  constexpr std::string_view kField = "Umask:\t";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    unsigned mask = 0;
    if (!line.starts_with(kField)) continue;
    if (std::from_chars(line.data() + kField.size(), line.data() + line.size(), mask, 8).ec == std::errc()) return mask;
  }
  return S_IWGRP | S_IWOTH;
}

// Errors of file systems that do not support a call or one of its flags.
bool unsupported(int errno_value) {
  return errno_value == EINVAL || errno_value == ENOSYS || errno_value == EOPNOTSUPP || errno_value == EPERM;
}

Error no_space(const std::string& target, int descriptor, std::uint64_t bytes, int errno_value) {
  Error error = io_error(target, fmt::format("reserve {} bytes", bytes), errno_value);
  struct statvfs disk {};
  if (::fstatvfs(descriptor, &disk) == 0)
    error.detail = fmt::format("{} bytes are free on the disk", std::uint64_t{disk.f_bavail} * disk.f_frsize);
  error.help = "free space, or write the output to another disk";
  return error;
}

// Beyond this limit the kernel sends SIGXFSZ, which kills the process, so refuse at the start.
Status check_size_limit(const std::string& target, std::uint64_t bytes) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) limit.rlim_cur = ~rlim_t{0};
  const std::uint64_t most = std::min<std::uint64_t>(limit.rlim_cur, std::numeric_limits<off_t>::max());
  if (bytes <= most) return ok();
  Error error = io_error(target, fmt::format("reserve {} bytes", bytes), EFBIG);
  error.detail = fmt::format("the file size limit is {} bytes", most);
  error.help = "raise the limit: ulimit -f unlimited";
  return error;
}

}  // namespace

std::string temporary_path(const std::string& target, const std::string& identity) {
  const std::size_t slash = target.rfind('/'), name = slash == std::string::npos ? 0 : slash + 1;
  return target.substr(0, name) + temporary_name(target.substr(name), identity);
}

Error being_written(const std::string& target) {
  return {ExitCode::kTransient, target, "another run is writing this output now", "",
          "wait until it has finished, or give this output a different path"};
}

Result<TemporaryFile> TemporaryFile::open(int folder, const std::string& name, const std::string& target,
                                          const std::string& identity, bool attach) {
  TemporaryFile file(folder, name, target);
  if (attach) {
    BOOST_OUTCOME_TRY(const bool there, file.open_existing(temporary_name(name, identity)));
    if (!file.strange_.empty())
      return Error{ExitCode::kIo, target,
                   "the file left next to it by an earlier run is not owned exclusively by this user",
                   fmt::format("{}: {}", quoted_name(temporary_name(name, identity)), file.strange_),
                   "remove it and start over"};
    if (!there) return io_error(target, "continue the file left next to it by an earlier run", ENOENT);
    if (const Status noted = file.note_reserved(); !noted) return file.keep(), noted.error();
    return file;
  }
  for (int attempt = 0; attempt < kMaxAttempts && !file.descriptor_; ++attempt) {
    BOOST_OUTCOME_TRY(file.create(identity));
  }
  if (!file.descriptor_) return io_error(target, "create a temporary file next to it", EEXIST);
  return file;
}

// If there is no descriptor afterwards, the name was taken and is free again: try once more.
Status TemporaryFile::create(const std::string& identity) {
  const bool is_shared = !identity.empty() && strange_.empty();
  std::string temporary = temporary_name(name_, is_shared          ? identity
                                                : identity.empty() ? random_identity()
                                                                   : fmt::format("{}-{}", identity, random_identity()));
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
  Descriptor created(retry([&] { return system_calls().openat(folder_, temporary.c_str(), flags, kOwnMode); }));
  if (created) {
    try_lock(created.get());
    descriptor_ = std::move(created);
    temporary_ = std::move(temporary);  // cannot throw: the file already exists by now
    return ok();
  }
  if (errno != EEXIST) return io_error(target_, "create a temporary file next to it", errno);
  if (!is_shared) return ok();
  BOOST_OUTCOME_TRY(const bool there, open_existing(temporary));
  if (!strange_.empty())
    warning_ = fmt::format("{}: the file {} next to it is not touched ({}); this run uses another temporary name",
                           target_, quoted_name(temporary), strange_);
  if (there && retry([&] { return system_calls().ftruncate(descriptor(), 0); }) < 0)
    return failed("truncate the temporary file next to it", errno);
  return ok();
}

// Returns false if the file is missing or not owned exclusively by this user. Checks that the opened file still has the
// name: a file that was published in the meantime must not be used.
Result<bool> TemporaryFile::open_existing(std::string temporary) {
  const SystemCalls& calls = system_calls();
  BOOST_OUTCOME_TRY(FoundFile there, open_own(folder_, temporary, O_RDWR, target_));
  strange_ = std::move(there.strange);
  Descriptor found = std::move(there.file);
  if (!found) return false;
  if (!try_lock(found.get())) return being_written(target_);
  struct stat opened {
  }, named{};
  if (retry([&] { return calls.fstat(found.get(), &opened); }) < 0 ||
      retry([&] { return calls.fstatat(folder_, temporary.c_str(), &named, AT_SYMLINK_NOFOLLOW); }) < 0 ||
      opened.st_ino != named.st_ino || opened.st_dev != named.st_dev)
    return false;
  descriptor_ = std::move(found);
  temporary_ = std::move(temporary);
  return true;
}

Result<std::uint64_t> TemporaryFile::bytes() const {
  struct stat info {};
  if (retry([&] { return system_calls().fstat(descriptor(), &info); }) < 0)
    return failed("inspect the temporary file next to it", errno);
  return static_cast<std::uint64_t>(info.st_size);
}

Result<FileId> TemporaryFile::id() const {
  struct stat info {};
  if (retry([&] { return system_calls().fstat(descriptor(), &info); }) < 0)
    return failed("inspect the temporary file next to it", errno);
  return FileId{info.st_dev, info.st_ino};
}

TemporaryFile::State TemporaryFile::state_of(const struct stat& info) {
  return {{info.st_dev, info.st_ino}, info.st_size, nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
}

Result<bool> TemporaryFile::is_as_left() {
  struct stat info {};  // by name, since the file of that name will be published
  const auto call = [&] { return system_calls().fstatat(folder_, temporary_.c_str(), &info, AT_SYMLINK_NOFOLLOW); };
  if (retry(call) < 0) return failed("inspect the temporary file next to it", errno);
  const State now = state_of(info);
  BOOST_OUTCOME_TRY(const FileId own, id());
  if (now.id != own)
    return Error{ExitCode::kIo, target_, "another program took the name of the temporary file next to it",
                 "nothing was written", "find out what else writes to this folder, then start over"};
  const bool same = !left_ || now == *left_;
  left_ = now;
  return same;
}

Result<bool> TemporaryFile::has_its_blocks() const {
  struct stat info {};
  if (retry([&] { return system_calls().fstat(descriptor(), &info); }) < 0)
    return failed("inspect the temporary file next to it", errno);
  return info.st_blocks >= reserved_;
}

// Same mode as a file created by open(), which also applies the folder's default permissions (ACL).
mode_t TemporaryFile::mode_of_new_file() const {
  const Descriptor nameless(::openat(folder_, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  struct stat info {};
  if (nameless && ::fstat(nameless.get(), &info) == 0) return info.st_mode & 0777;
  return 0666 & ~umask_now();
}

// A replacement file gets the permissions of the file it replaces: a private file is private from the first byte on.
Status TemporaryFile::set_mode(mode_t mode) {
  mode_ = mode;
  const mode_t own = mode & ~mode_t{S_IWGRP | S_IWOTH};
  if (retry([&] { return system_calls().fchmod(descriptor(), own); }) == 0) return ok();
  return io_error(target_, "set the permissions of the file", errno);
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : folder_(other.folder_),
      name_(std::move(other.name_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      strange_(std::move(other.strange_)),
      warning_(std::move(other.warning_)),
      mode_(other.mode_),
      left_(other.left_),
      reserved_(other.reserved_),
      published_(other.published_),
      descriptor_(std::move(other.descriptor_)),
      direct_(std::move(other.direct_)) {}

TemporaryFile::~TemporaryFile() {
  if (!temporary_.empty()) remove();
}

Status TemporaryFile::open_direct() {
  const int flags = O_WRONLY | O_DIRECT | O_CLOEXEC;
  const std::string same = fmt::format("/proc/self/fd/{}", descriptor());  // regardless of its current name
  direct_ = Descriptor(retry([&] { return system_calls().openat(AT_FDCWD, same.c_str(), flags, 0); }));
  if (direct_) return ok();
  return errno == EINVAL ? no_direct_io(target_) : io_error(target_, "open the temporary file next to it", errno);
}

Status TemporaryFile::reserve(std::uint64_t bytes) {
  const SystemCalls& calls = system_calls();
  BOOST_OUTCOME_TRY(check_size_limit(target_, bytes));
  if (bytes == 0) return ok();
  const off_t size = static_cast<off_t>(bytes);
  if (retry([&] { return calls.fallocate(descriptor(), 0, 0, size); }) == 0) return note_reserved();
  if (errno != EOPNOTSUPP && errno != ENOSYS) return no_space(target_, descriptor(), bytes, errno);
  struct statvfs disk {};
  if (retry([&] { return calls.fstatvfs(descriptor(), &disk); }) < 0) return failed("inspect the disk", errno);
  if (disk.f_bavail < bytes / disk.f_frsize) return no_space(target_, descriptor(), bytes, ENOSPC);
  if (retry([&] { return calls.ftruncate(descriptor(), size); }) < 0)
    return no_space(target_, descriptor(), bytes, errno);
  return ok();
}

Status TemporaryFile::note_reserved() {
  struct stat info {};
  if (retry([&] { return system_calls().fstat(descriptor(), &info); }) < 0)
    return failed("inspect the temporary file next to it", errno);
  reserved_ = info.st_blocks;
  return ok();
}

Status TemporaryFile::publish(bool overwrite, bool revocable) {
  BOOST_OUTCOME_TRY(const std::optional<struct stat> there, check_target(target_, overwrite));
  BOOST_OUTCOME_TRY(const bool is_own, is_as_left());
  if (!is_own)
    return Error{ExitCode::kIo, target_, "another program changed the file since it was checked", "nothing was written",
                 "find out what else writes to this folder, then run the job again"};
  int problem = !there      ? rename(RENAME_NOREPLACE, Published::kNew)
                : revocable ? rename(RENAME_EXCHANGE, Published::kExchanged)
                            : rename(0, Published::kForGood);
  // Network file systems support neither of the flags. The replaced file then cannot be restored, and for a new name a
  // hard link serves as well.
  if (there && revocable && (unsupported(problem) || problem == ENOENT)) problem = rename(0, Published::kForGood);
  if (!there && unsupported(problem)) problem = link();
  if (!there && unsupported(problem)) problem = rename_unless_exists();
  if (problem != 0) return failed("rename the finished file", problem);
  return ok();
}

Status TemporaryFile::take_back() {
  if (published_ == Published::kNot) return ok();
  if (published_ == Published::kForGood)
    return Error{ExitCode::kIo, target_, "the file that was replaced cannot be restored here", "", ""};
  const unsigned flags = published_ == Published::kExchanged ? RENAME_EXCHANGE : 0;
  const auto call = [&] {
    return system_calls().renameat2(folder_, name_.c_str(), folder_, temporary_.c_str(), flags);
  };
  if (retry(call) < 0) return failed("undo the renaming of the finished file", errno);
  published_ = Published::kNot;
  return ok();
}

Status TemporaryFile::settle() {
  if (published_ == Published::kExchanged) remove();
  keep();
  const mode_t mode = mode_ ? *mode_ : mode_of_new_file();
  if ((mode & (S_IWGRP | S_IWOTH)) == 0) return ok();  // already set
  if (retry([&] { return system_calls().fchmod(descriptor(), mode); }) == 0) return ok();
  return io_error(target_, "set the permissions of the file", errno);
}

void TemporaryFile::remove() {
  retry([&] { return system_calls().unlinkat(folder_, temporary_.c_str(), 0); });
}

int TemporaryFile::rename(unsigned flags, Published then) {
  const auto call = [&] {
    return system_calls().renameat2(folder_, temporary_.c_str(), folder_, name_.c_str(), flags);
  };
  if (retry(call) < 0) return errno;
  published_ = then;
  return 0;
}

// Links the final name, then removes the temporary one.
int TemporaryFile::link() {
  const auto call = [&] { return system_calls().linkat(folder_, temporary_.c_str(), folder_, name_.c_str(), 0); };
  if (retry(call) < 0) return errno;
  remove();
  published_ = Published::kNew;
  return 0;
}

// A file that appears between the two calls is lost; no better way exists if neither of the other methods is supported.
int TemporaryFile::rename_unless_exists() {
  struct stat info {};
  const auto call = [&] { return system_calls().fstatat(folder_, name_.c_str(), &info, AT_SYMLINK_NOFOLLOW); };
  if (retry(call) == 0) return EEXIST;
  return errno == ENOENT ? rename(0, Published::kNew) : errno;
}

Error TemporaryFile::failed(const char* action, int errno_value) const {
  if (errno_value == EEXIST) return target_exists(target_);
  return io_error(target_, action, errno_value);
}

}  // namespace ggufmill
