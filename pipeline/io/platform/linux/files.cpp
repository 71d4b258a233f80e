// Calls that only Linux has: direct I/O, reserved space, renaming without replacing and with exchange, and control of
// the page cache.

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <string_view>

#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/posix/calls.h"

namespace ggufmill {
namespace posix {

int reopen_direct(int descriptor, unsigned flags) {
  const std::string same = "/proc/self/fd/" + std::to_string(descriptor);
  return ::openat(AT_FDCWD, same.c_str(), (flags & kOpenWrite ? O_WRONLY : O_RDONLY | O_NOCTTY) | O_DIRECT | O_CLOEXEC);
}

int reserve(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  return ::fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

int sync(int descriptor) { return ::fsync(descriptor); }

int rename(int from_folder, const char* from, int to_folder, const char* to, Rename how) {
  const unsigned flags = how == Rename::kNew ? RENAME_NOREPLACE : how == Rename::kExchange ? RENAME_EXCHANGE : 0;
  return ::renameat2(at(from_folder), from, at(to_folder), to, flags);
}

int make_pipe(int ends[2]) { return ::pipe2(ends, O_CLOEXEC); }

}  // namespace posix

namespace {

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

// Files of tmpfs are in memory, unless they were swapped out.
bool is_in_memory(int descriptor) {
  struct statfs info;
  return retry([&] { return ::fstatfs(descriptor, &info); }) == 0 && info.f_type == TMPFS_MAGIC;
}

}  // namespace

// A nameless file also gets the folder's default permissions (ACL).
unsigned new_file_mode(int folder) {
  const Descriptor nameless(::openat(posix::at(folder), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  struct stat info {};
  if (nameless && ::fstat(nameless.get(), &info) == 0) return info.st_mode & kPermissions;
  return 0666 & ~umask_now();
}

bool reserves_slowly(int descriptor) { return is_in_memory(descriptor); }

// tmpfs does not support RWF_NOWAIT.
std::int64_t read_cached(int descriptor, void* into, std::size_t bytes, std::uint64_t offset) {
  const iovec piece{into, bytes};
  const auto at = static_cast<off_t>(offset);
  const ssize_t got = ::preadv2(descriptor, &piece, 1, at, RWF_NOWAIT);
  if (got >= 0 || errno != EOPNOTSUPP || !is_in_memory(descriptor)) return got;
  return ::pread(descriptor, into, bytes, at);
}

void start_writing_back(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  ::sync_file_range(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
}

void finish_writing_back(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  constexpr unsigned kWholly = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  ::sync_file_range(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes), kWholly);
}

std::int64_t copy_in_kernel(int from, std::uint64_t from_offset, int to, std::uint64_t to_offset, std::size_t bytes) {
  auto source = static_cast<off_t>(from_offset), target = static_cast<off_t>(to_offset);
  return ::copy_file_range(from, &source, to, &target, bytes, 0);
}

}  // namespace ggufmill
