#pragma once
// The system calls that can fail for external reasons, in a table, so that a test can make the k-th call fail for every
// k (as SQLite's tests do).

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace ggufmill {

// Each call is as in section 2 of the manual: it returns -1 and sets errno on failure.
struct SystemCalls {
  int (*openat)(int folder, const char* path, int flags, mode_t mode);
  int (*fstat)(int descriptor, struct stat* out);
  int (*fstatat)(int folder, const char* path, struct stat* out, int flags);
  int (*set_status_flags)(int descriptor, int flags);  // fcntl F_SETFL
  ssize_t (*pread)(int descriptor, void* into, std::size_t bytes, off_t offset);
  ssize_t (*pwrite)(int descriptor, const void* from, std::size_t bytes, off_t offset);
  int (*fallocate)(int descriptor, int mode, off_t offset, off_t bytes);
  int (*ftruncate)(int descriptor, off_t bytes);
  int (*fstatvfs)(int descriptor, struct statvfs* out);
  int (*fsync)(int descriptor);
  int (*fchmod)(int descriptor, mode_t mode);
  int (*mkdirat)(int folder, const char* path, mode_t mode);
  int (*renameat2)(int from_folder, const char* from, int to_folder, const char* to, unsigned flags);
  int (*linkat)(int from_folder, const char* from, int to_folder, const char* to, int flags);
  int (*unlinkat)(int folder, const char* path, int flags);
};

// Returns the kernel's own calls.
const SystemCalls& kernel_calls();
// Returns the calls in use: the kernel's, unless a test has replaced them. Thread-safe.
const SystemCalls& system_calls();
// For tests; null restores the kernel's calls. `calls` must outlive its use.
void set_system_calls(const SystemCalls* calls);

// Nanoseconds since 1970.
inline std::int64_t nanoseconds(const struct timespec& time) {
  return time.tv_sec * std::int64_t{1000000000} + time.tv_nsec;
}

// Repeats a call that was interrupted by a signal.
template <class Call>
auto retry(Call&& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

}  // namespace ggufmill
