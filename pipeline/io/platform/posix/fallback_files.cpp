// Calls of a POSIX system about which nothing more is known.

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/posix/calls.h"

namespace ggufmill {
namespace posix {

int reopen_direct(int, unsigned) {
  errno = EINVAL;
  return -1;
}

// A file system for which this means writing to every block counts as one that cannot reserve, if it can be recognized.
int reserve(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  errno = ::posix_fallocate(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  if (errno == EINVAL) errno = EOPNOTSUPP;
  return errno == 0 ? 0 : -1;
}

int sync(int descriptor) { return ::fsync(descriptor); }

int rename(int from_folder, const char* from, int to_folder, const char* to, Rename how) {
  if (how == Rename::kReplace) return ::renameat(at(from_folder), from, at(to_folder), to);
  errno = EINVAL;
  return -1;
}

// A program that another thread starts between the calls inherits the pipe.
int make_pipe(int ends[2]) {
  if (::pipe(ends) != 0) return -1;
  for (int i = 0; i < 2; ++i) ::fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  return 0;
}

}  // namespace posix

bool reserves_slowly(int) { return false; }

std::int64_t read_cached(int, void*, std::size_t, std::uint64_t) { return -1; }

void start_writing_back(int, std::uint64_t, std::uint64_t) {}

void finish_writing_back(int descriptor, std::uint64_t, std::uint64_t) { ::fdatasync(descriptor); }

std::int64_t copy_in_kernel(int, std::uint64_t, int, std::uint64_t, std::size_t) { return -1; }

}  // namespace ggufmill
