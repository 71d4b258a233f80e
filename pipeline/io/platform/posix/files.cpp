// Calls that all POSIX systems have in common.
#include "pipeline/io/platform/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "pipeline/io/platform/posix/calls.h"

namespace ggufmill {
namespace {

static_assert(sizeof(off_t) == 8, "files are larger than 2 GiB");

FileStatus::Kind kind_of(mode_t mode) {
  using Kind = FileStatus::Kind;
  return S_ISREG(mode)    ? Kind::kFile
         : S_ISDIR(mode)  ? Kind::kFolder
         : S_ISLNK(mode)  ? Kind::kLink
         : S_ISFIFO(mode) ? Kind::kPipe
         : S_ISSOCK(mode) ? Kind::kSocket
                          : Kind::kDevice;
}

std::int64_t nanoseconds(const struct timespec& time) { return time.tv_sec * std::int64_t{1000000000} + time.tv_nsec; }

FileStatus status_of(const struct stat& info) {
  FileStatus status;
  status.kind = kind_of(info.st_mode);
  status.mode = info.st_mode & 07777;
  status.device = static_cast<std::uint64_t>(info.st_dev);
  status.inode = info.st_ino;
  status.bytes = static_cast<std::uint64_t>(info.st_size);
  status.blocks = static_cast<std::uint64_t>(info.st_blocks);
  status.links = info.st_nlink;
  status.owner = info.st_uid;
  status.group = info.st_gid;
#ifdef __APPLE__
  status.modified = nanoseconds(info.st_mtimespec);
  status.changed = nanoseconds(info.st_ctimespec);
#else
  status.modified = nanoseconds(info.st_mtim);
  status.changed = nanoseconds(info.st_ctim);
#endif
  return status;
}

int open_flags(unsigned flags) {
  int open = (flags & kOpenReadWrite) == kOpenReadWrite ? O_RDWR : flags & kOpenWrite ? O_WRONLY : O_RDONLY;
  if (flags & kOpenCreate) open |= O_CREAT;
  if (flags & kOpenNew) open |= O_EXCL;
  if (flags & kOpenEmpty) open |= O_TRUNC;
  if (flags & kOpenNoFollow) open |= O_NOFOLLOW;
  if (flags & kOpenFolder) open |= O_DIRECTORY;
  if (flags & kOpenNoWaiting) open |= O_NONBLOCK | O_NOCTTY;
  return open | O_CLOEXEC;
}

int open(int folder, const char* path, unsigned flags, unsigned mode) {
  return ::openat(posix::at(folder), path, open_flags(flags), static_cast<mode_t>(mode));
}

int status(int descriptor, FileStatus* out) {
  struct stat info;
  if (::fstat(descriptor, &info) != 0) return -1;
  *out = status_of(info);
  return 0;
}

int status_at(int folder, const char* path, Links links, FileStatus* out) {
  struct stat info;
  if (::fstatat(posix::at(folder), path, &info, links == Links::kFollow ? 0 : AT_SYMLINK_NOFOLLOW) != 0) return -1;
  *out = status_of(info);
  return 0;
}

int free_space(int descriptor, std::uint64_t* bytes) {
  struct statvfs disk;
  if (::fstatvfs(descriptor, &disk) != 0) return -1;
  *bytes = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  return 0;
}

constexpr SystemCalls kKernelCalls = {
    .open = open,
    .reopen_direct = posix::reopen_direct,
    .status = status,
    .status_at = status_at,
    .set_waiting = [](int descriptor) { return ::fcntl(descriptor, F_SETFL, 0); },
    .read = [](int descriptor, void* into, std::size_t bytes, std::uint64_t offset) -> std::int64_t {
      return ::pread(descriptor, into, bytes, static_cast<off_t>(offset));
    },
    .write = [](int descriptor, const void* from, std::size_t bytes, std::uint64_t offset) -> std::int64_t {
      return ::pwrite(descriptor, from, bytes, static_cast<off_t>(offset));
    },
    .reserve = posix::reserve,
    .resize = [](int descriptor, std::uint64_t bytes) { return ::ftruncate(descriptor, static_cast<off_t>(bytes)); },
    .free_space = free_space,
    .sync = posix::sync,
    .set_mode = [](int descriptor, unsigned mode) { return ::fchmod(descriptor, static_cast<mode_t>(mode)); },
    .make_folder = [](int folder, const char* path,
                      unsigned mode) { return ::mkdirat(posix::at(folder), path, static_cast<mode_t>(mode)); },
    .rename = posix::rename,
    .link = [](int from_folder, const char* from, int to_folder,
               const char* to) { return ::linkat(posix::at(from_folder), from, posix::at(to_folder), to, 0); },
    .remove = [](int folder, const char* path) { return ::unlinkat(posix::at(folder), path, 0); },
    .remove_folder = [](int folder, const char* path) { return ::unlinkat(posix::at(folder), path, AT_REMOVEDIR); },
};

}  // namespace

int posix::at(int folder) { return folder == kCurrentFolder ? AT_FDCWD : folder; }

const SystemCalls& kernel_calls() { return kKernelCalls; }

void close_file(int descriptor) { ::close(descriptor); }

std::uint64_t own_user() { return ::geteuid(); }

int why_not_writable(const std::string& folder) { return ::access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno; }

std::uint64_t most_file_bytes() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) limit.rlim_cur = ~rlim_t{0};
  return std::min<std::uint64_t>(limit.rlim_cur, std::numeric_limits<off_t>::max());
}

Descriptor create_nameless(const std::string& folder) {
  std::string name = folder + "/.ggufmill-spool-XXXXXX";
  Descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file) ::unlink(name.c_str());
  return file;
}

bool try_lock(int descriptor, Lock lock) {
  return ::flock(descriptor, (lock == Lock::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

bool find_hole(int descriptor, std::uint64_t from, std::uint64_t bytes, Hole& hole) {
#ifdef SEEK_HOLE
  const off_t begin = ::lseek(descriptor, static_cast<off_t>(from), SEEK_HOLE);
  if (begin < 0 || static_cast<std::uint64_t>(begin) >= bytes) return false;
  const off_t data = ::lseek(descriptor, begin, SEEK_DATA);
  hole = {static_cast<std::uint64_t>(begin), data < 0 ? bytes : static_cast<std::uint64_t>(data)};
  return true;
#else
  return static_cast<void>(descriptor), static_cast<void>(from), static_cast<void>(bytes), static_cast<void>(hole),
         false;
#endif
}

}  // namespace ggufmill
