// Calls that only macOS has. Unproven: compiled with stub headers, never run.

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/posix/calls.h"

namespace ggufmill {
namespace posix {

// macOS has no alternative path of an open file that opens it again; the path may have changed its meaning only if
// somebody renamed the file, so the opened file must be the same.
int reopen_direct(int descriptor, unsigned flags) {
  char path[MAXPATHLEN];
  if (::fcntl(descriptor, F_GETPATH, path) < 0) return -1;
  const int direct = ::open(path, (flags & kOpenWrite ? O_WRONLY : O_RDONLY | O_NOCTTY) | O_CLOEXEC);
  if (direct < 0) return -1;
  struct stat before, opened;
  const bool is_same = ::fstat(descriptor, &before) == 0 && ::fstat(direct, &opened) == 0 &&
                       before.st_dev == opened.st_dev && before.st_ino == opened.st_ino;
  if (!is_same) errno = ESTALE;
  if (is_same && ::fcntl(direct, F_NOCACHE, 1) == 0) return direct;
  const int error = errno;
  ::close(direct);
  errno = error == ENOTSUP ? EINVAL : error;
  return -1;
}

// Allocates blocks beyond those that the file has, contiguous ones if there are any.
int reserve(int descriptor, std::uint64_t offset, std::uint64_t more) {
  const std::uint64_t bytes = offset + more;
  struct stat info;
  if (::fstat(descriptor, &info) != 0) return -1;
  const std::uint64_t has = static_cast<std::uint64_t>(info.st_blocks) * 512;
  if (has < bytes) {
    fstore_t space{F_ALLOCATECONTIG | F_ALLOCATEALL, F_PEOFPOSMODE, 0, static_cast<off_t>(bytes - has), 0};
    if (::fcntl(descriptor, F_PREALLOCATE, &space) < 0) {
      space.fst_flags = F_ALLOCATEALL;
      if (::fcntl(descriptor, F_PREALLOCATE, &space) < 0) {
        if (errno == ENOTSUP || errno == EINVAL) errno = EOPNOTSUPP;
        return -1;
      }
    }
  }
  return ::ftruncate(descriptor, std::max(info.st_size, static_cast<off_t>(bytes)));
}

// fsync() of macOS leaves the data in the disk's own cache.
int sync(int descriptor) {
  if (::fcntl(descriptor, F_FULLFSYNC) == 0) return 0;
  return errno == EINTR ? -1 : ::fsync(descriptor);  // some file systems have only the latter
}

int rename(int from_folder, const char* from, int to_folder, const char* to, Rename how) {
  const unsigned flags = how == Rename::kNew ? RENAME_EXCL : how == Rename::kExchange ? RENAME_SWAP : 0;
  const int result = ::renameatx_np(at(from_folder), from, at(to_folder), to, flags);
  if (result < 0 && errno == ENOTSUP) errno = EINVAL;
  return result;
}

// A program that another thread starts between the calls inherits the pipe.
int make_pipe(int ends[2]) {
  if (::pipe(ends) != 0) return -1;
  for (int i = 0; i < 2; ++i) ::fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  return 0;
}

}  // namespace posix

int fill_space(int descriptor, std::uint64_t bytes) { return posix::reserve(descriptor, 0, bytes) == 0 ? 0 : errno; }

bool reserves_slowly(int) { return false; }

std::int64_t read_cached(int, void*, std::size_t, std::uint64_t) { return -1; }

void start_writing_back(int, std::uint64_t, std::uint64_t) {}

void finish_writing_back(int descriptor, std::uint64_t, std::uint64_t) { ::fsync(descriptor); }

void drop_from_cache(int, std::uint64_t, std::uint64_t) {}

std::int64_t copy_in_kernel(int, std::uint64_t, int, std::uint64_t, std::size_t) { return -1; }

}  // namespace ggufmill
