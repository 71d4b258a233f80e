#include "pipeline/io/temporary_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {
namespace {

constexpr std::size_t kMaxNameLength = 255;  // NAME_MAX of all common file systems
constexpr std::size_t kRandomLetters = 6;
// Writes wait for so many bytes to be reserved: for a millisecond.
constexpr std::uint64_t kReservedAtOnce = 4 << 20;

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

std::string random_identity() { return random_letters(kRandomLetters); }

// Number of attempts to create a file under a name that may exist; an attempt is repeated if the existing file has just
// disappeared.
constexpr int kMaxAttempts = 100;

// Errors of file systems that do not support a call or one of its flags.
bool unsupported(int errno_value) {
  return errno_value == EINVAL || errno_value == ENOSYS || errno_value == EOPNOTSUPP || errno_value == EPERM;
}

Error no_space(const std::string& target, int descriptor, std::uint64_t bytes, int errno_value) {
  Error error = io_error(target, fmt::format("reserve {} bytes", bytes), errno_value);
  if (std::uint64_t free = 0; kernel_calls().free_space(descriptor, &free) == 0)
    error.detail = fmt::format("{} bytes are free on the disk", free);
  error.help = "free space, or write the output to another disk";
  return error;
}

// Beyond this limit the kernel sends SIGXFSZ, which kills the process, so refuse at the start.
Status check_size_limit(const std::string& target, std::uint64_t bytes) {
  const std::uint64_t most = most_file_bytes();
  if (bytes <= most) return ok();
  Error error = io_error(target, fmt::format("reserve {} bytes", bytes), EFBIG);
  error.detail = fmt::format("the file size limit is {} bytes", most);
  error.help = "raise the limit: ulimit -f unlimited";
  return error;
}

}  // namespace

std::string temporary_path(const std::string& target, const std::string& identity) {
  const std::size_t name = name_begin(target);
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
  Descriptor created = open_file(folder_, temporary, kOpenReadWrite | kOpenCreate | kOpenNew, kOwnMode);
  if (created) {
    try_lock(created.get(), Lock::kExclusive);
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
  if (there && retry([&] { return system_calls().resize(descriptor(), 0); }) < 0)
    return failed("truncate the temporary file next to it", errno);
  return ok();
}

// Returns false if the file is missing or not owned exclusively by this user. Checks that the opened file still has the
// name: a file that was published in the meantime must not be used.
Result<bool> TemporaryFile::open_existing(std::string temporary) {
  BOOST_OUTCOME_TRY(FoundFile there, open_own(folder_, temporary, kOpenReadWrite, target_));
  strange_ = std::move(there.strange);
  Descriptor found = std::move(there.file);
  if (!found) return false;
  if (!try_lock(found.get(), Lock::kExclusive)) return being_written(target_);
  FileStatus opened, named;
  if (!get_status(found.get(), opened) || !get_status(folder_, temporary, Links::kNoFollow, named) ||
      !named.is_same_file(opened))
    return false;
  descriptor_ = std::move(found);
  temporary_ = std::move(temporary);
  return true;
}

Result<std::uint64_t> TemporaryFile::bytes() const {
  FileStatus info;
  if (!get_status(descriptor(), info)) return failed("inspect the temporary file next to it", errno);
  return info.bytes;
}

Result<FileId> TemporaryFile::id() const {
  FileStatus info;
  if (!get_status(descriptor(), info)) return failed("inspect the temporary file next to it", errno);
  return FileId{info.device, info.inode};
}

TemporaryFile::State TemporaryFile::state_of(const FileStatus& info) {
  return {{info.device, info.inode}, info.bytes, info.modified, info.changed};
}

Result<bool> TemporaryFile::is_as_left() {
  FileStatus info;  // by name, since the file of that name will be published
  if (!get_status(folder_, temporary_, Links::kNoFollow, info))
    return failed("inspect the temporary file next to it", errno);
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
  FileStatus info;
  if (!get_status(descriptor(), info)) return failed("inspect the temporary file next to it", errno);
  return info.blocks >= reserved_;
}

// A replacement file gets the permissions of the file it replaces: a private file is private from the first byte on.
Status TemporaryFile::set_mode(unsigned mode) {
  mode_ = mode;
  const unsigned own = mode & ~(kGroupMayWrite | kOthersMayWrite);
  if (retry([&] { return system_calls().set_mode(descriptor(), own); }) == 0) return ok();
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
      to_reserve_(other.to_reserve_),
      reserved_to_(other.reserved_to_),
      published_(other.published_),
      descriptor_(std::move(other.descriptor_)),
      direct_(std::move(other.direct_)) {}

TemporaryFile::~TemporaryFile() {
  if (!temporary_.empty()) remove();
}

Status TemporaryFile::open_direct() {
  direct_ = Descriptor(retry([&] { return system_calls().reopen_direct(descriptor(), kOpenWrite); }));
  if (direct_) return ok();
  return errno == EINVAL ? no_direct_io(target_) : io_error(target_, "open the temporary file next to it", errno);
}

Status TemporaryFile::reserve(std::uint64_t bytes) {
  const SystemCalls& calls = system_calls();
  BOOST_OUTCOME_TRY(check_size_limit(target_, bytes));
  if (bytes == 0) return ok();
  if (retry([&] { return calls.reserve(descriptor(), 0, bytes); }) == 0) return note_reserved();
  if (errno != EOPNOTSUPP && errno != ENOSYS) return no_space(target_, descriptor(), bytes, errno);
  std::uint64_t free = 0;
  if (retry([&] { return calls.free_space(descriptor(), &free); }) < 0) return failed("inspect the disk", errno);
  if (free < bytes) return no_space(target_, descriptor(), bytes, ENOSPC);
  if (retry([&] { return calls.resize(descriptor(), bytes); }) < 0)
    return no_space(target_, descriptor(), bytes, errno);
  return ok();
}

// A file system without a limit reports no free space, and only reserving tells.
Status TemporaryFile::begin_reserving(std::uint64_t bytes) {
  const SystemCalls& calls = system_calls();
  BOOST_OUTCOME_TRY(check_size_limit(target_, bytes));
  std::uint64_t free = 0;
  if (bytes <= kReservedAtOnce || !reserves_slowly(descriptor()) || calls.free_space(descriptor(), &free) < 0 ||
      free < bytes)
    return reserve(bytes);
  if (retry([&] { return calls.resize(descriptor(), bytes); }) < 0)
    return no_space(target_, descriptor(), bytes, errno);
  to_reserve_ = bytes;
  return ok();
}

Result<bool> TemporaryFile::reserve_more() {
  if (to_reserve_ == 0) return true;
  const std::uint64_t bytes = std::min(kReservedAtOnce, to_reserve_ - reserved_to_);
  if (retry([&] { return system_calls().reserve(descriptor(), reserved_to_, bytes); }) < 0)
    return no_space(target_, descriptor(), to_reserve_, errno);
  reserved_to_ += bytes;
  if (reserved_to_ < to_reserve_) return false;
  BOOST_OUTCOME_TRY(end_reserving());
  return true;
}

Status TemporaryFile::end_reserving() {
  if (to_reserve_ == 0) return ok();
  BOOST_OUTCOME_TRY(note_reserved());
  to_reserve_ = 0;
  return ok();
}

Status TemporaryFile::note_reserved() {
  FileStatus info;
  if (!get_status(descriptor(), info)) return failed("inspect the temporary file next to it", errno);
  reserved_ = info.blocks;
  return ok();
}

Status TemporaryFile::publish(bool overwrite, bool revocable) {
  BOOST_OUTCOME_TRY(const std::optional<FileStatus> there, check_target(target_, overwrite));
  BOOST_OUTCOME_TRY(const bool is_own, is_as_left());
  if (!is_own)
    return Error{ExitCode::kIo, target_, "another program changed the file since it was checked", "nothing was written",
                 "find out what else writes to this folder, then run the job again"};
  int problem = !there      ? rename(Rename::kNew, Published::kNew)
                : revocable ? rename(Rename::kExchange, Published::kExchanged)
                            : rename(Rename::kReplace, Published::kForGood);
  // Network file systems can do neither of the first two. The replaced file then cannot be restored, and for a new name
  // a hard link serves as well.
  if (there && revocable && (unsupported(problem) || problem == ENOENT))
    problem = rename(Rename::kReplace, Published::kForGood);
  if (!there && unsupported(problem)) problem = link();
  if (!there && unsupported(problem)) problem = rename_unless_exists();
  if (problem != 0) return failed("rename the finished file", problem);
  return ok();
}

Status TemporaryFile::take_back() {
  if (published_ == Published::kNot) return ok();
  if (published_ == Published::kForGood)
    return Error{ExitCode::kIo, target_, "the file that was replaced cannot be restored here", "", ""};
  const Rename how = published_ == Published::kExchanged ? Rename::kExchange : Rename::kReplace;
  const auto call = [&] { return system_calls().rename(folder_, name_.c_str(), folder_, temporary_.c_str(), how); };
  if (retry(call) < 0) return failed("undo the renaming of the finished file", errno);
  published_ = Published::kNot;
  return ok();
}

Status TemporaryFile::settle() {
  if (published_ == Published::kExchanged) remove();
  keep();
  const unsigned mode = mode_ ? *mode_ : new_file_mode(folder_);
  if ((mode & (kGroupMayWrite | kOthersMayWrite)) == 0) return ok();  // already set
  if (retry([&] { return system_calls().set_mode(descriptor(), mode); }) == 0) return ok();
  return io_error(target_, "set the permissions of the file", errno);
}

void TemporaryFile::remove() { remove_file(folder_, temporary_); }

int TemporaryFile::rename(Rename how, Published then) {
  const auto call = [&] { return system_calls().rename(folder_, temporary_.c_str(), folder_, name_.c_str(), how); };
  if (retry(call) < 0) return errno;
  published_ = then;
  return 0;
}

// Links the final name, then removes the temporary one.
int TemporaryFile::link() {
  const auto call = [&] { return system_calls().link(folder_, temporary_.c_str(), folder_, name_.c_str()); };
  if (retry(call) < 0) return errno;
  remove();
  published_ = Published::kNew;
  return 0;
}

// A file that appears between the two calls is lost; no better way exists if neither of the other methods is supported.
int TemporaryFile::rename_unless_exists() {
  FileStatus info;
  if (get_status(folder_, name_, Links::kNoFollow, info)) return EEXIST;
  return errno == ENOENT ? rename(Rename::kReplace, Published::kNew) : errno;
}

Error TemporaryFile::failed(const char* action, int errno_value) const {
  if (errno_value == EEXIST) return target_exists(target_);
  return io_error(target_, action, errno_value);
}

}  // namespace ggufmill
