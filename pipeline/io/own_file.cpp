#include "pipeline/io/own_file.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstring>

#include "pipeline/io/system_calls.h"

namespace ggufmill {

std::string why_not_own(const struct stat& info) {
  if (S_ISLNK(info.st_mode)) return "it is a symbolic link";
  if (!S_ISREG(info.st_mode)) return "it is not a regular file";
  if (info.st_uid != ::geteuid()) return fmt::format("it belongs to user {}", info.st_uid);
  if (info.st_nlink > 1) return fmt::format("it has {} names (hard links)", info.st_nlink);
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("other users may write to it (mode {:04o})", info.st_mode & 07777);
  return {};
}

std::int64_t inode_time(const std::string& path) {
  struct stat info {};
  const auto look = [&] { return system_calls().fstatat(AT_FDCWD, path.c_str(), &info, 0); };
  return retry(look) < 0 ? 0 : nanoseconds(info.st_ctim);
}

bool is_locked(const std::string& path) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const Descriptor file(retry([&] { return system_calls().openat(AT_FDCWD, path.c_str(), flags, 0); }));
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

Result<FoundFile> open_own(int folder, const std::string& name, int access, const std::string& path) {
  const SystemCalls& calls = system_calls();
  struct stat info {};
  const auto look = [&] { return calls.fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW); };
  if (retry(look) < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return FoundFile{Descriptor(), {}};
    return io_error(path, "inspect the file left by an earlier run", errno);
  }
  // Checked before opening, because merely opening some devices triggers actions.
  if (std::string strange = why_not_own(info); !strange.empty()) return FoundFile{Descriptor(), std::move(strange)};
  const int flags = access | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Descriptor file(retry([&] { return calls.openat(folder, name.c_str(), flags, 0); }));
  if (!file && errno == ENOENT) return FoundFile{Descriptor(), {}};
  if (!file && (errno == EACCES || errno == EPERM || errno == ELOOP))
    return FoundFile{Descriptor(), fmt::format("it cannot be opened: {}", std::strerror(errno))};
  if (!file) return io_error(path, "open the file left by an earlier run", errno);
  if (retry([&] { return calls.fstat(file.get(), &info); }) < 0)
    return io_error(path, "inspect the file left by an earlier run", errno);
  if (std::string strange = why_not_own(info); !strange.empty()) return FoundFile{Descriptor(), std::move(strange)};
  // With O_NONBLOCK set, io_uring returns EAGAIN even for regular files.
  if (retry([&] { return calls.set_status_flags(file.get(), access); }) < 0)
    return io_error(path, "open the file left by an earlier run", errno);
  return FoundFile{std::move(file), {}};
}

}  // namespace ggufmill
