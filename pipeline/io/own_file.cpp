#include "pipeline/io/own_file.h"

#include <fmt/format.h>

#include <cstring>
#include <random>

#include "pipeline/io/platform/files.h"

namespace ggufmill {

std::string why_not_own(const FileStatus& info) {
  if (info.is_link()) return "it is a symbolic link";
  if (!info.is_file()) return "it is not a regular file";
  if (info.owner != own_user()) return fmt::format("it belongs to user {}", info.owner);
  if (info.links > 1) return fmt::format("it has {} names (hard links)", info.links);
  if ((info.mode & (kGroupMayWrite | kOthersMayWrite)) != 0)
    return fmt::format("other users may write to it (mode {:04o})", info.mode);
  return {};
}

bool is_own_file(const std::string& path) {
  FileStatus info;
  if (!get_status(kCurrentFolder, path, Links::kNoFollow, info)) return false;
  // A user's private group has the user's number and no other members; with it, umasks often leave it the right to
  // write. As for kernel modules (platform/program.h), it does not count as another user.
  if (info.group == info.owner) info.mode &= ~kGroupMayWrite;
  return why_not_own(info).empty();
}

std::string random_letters(std::size_t count) {
  std::string letters;
  std::random_device random;
  for (std::size_t i = 0; i < count; ++i) letters += "abcdefghijklmnopqrstuvwxyz0123456789"[random() % 36];
  return letters;
}

Result<std::string> make_private_folder(const std::string& start) {
  constexpr std::size_t kLetters = 12;
  constexpr int kMaxAttempts = 100;
  constexpr unsigned kPrivate = 0700;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    std::string path = start + random_letters(kLetters);
    const auto make = [&] { return system_calls().make_folder(kCurrentFolder, path.c_str(), kPrivate); };
    if (retry(make) == 0) return path;
    if (errno != EEXIST) return io_error(path, "create a private folder", errno);
  }
  return io_error(start, "create a private folder", EEXIST);
}

std::int64_t inode_time(const std::string& path) {
  FileStatus info;
  return get_status(kCurrentFolder, path, Links::kFollow, info) ? info.changed : 0;
}

bool is_locked(const std::string& path) {
  const Descriptor file = open_file(kCurrentFolder, path, kOpenRead | kOpenNoFollow | kOpenNoWaiting);
  return file && !try_lock(file.get(), Lock::kShared);
}

Result<FoundFile> open_own(int folder, const std::string& name, unsigned access, const std::string& path) {
  FileStatus info;
  if (!get_status(folder, name, Links::kNoFollow, info)) {
    if (errno == ENOENT || errno == ENOTDIR) return FoundFile{Descriptor(), {}};
    return io_error(path, "inspect the file left by an earlier run", errno);
  }
  // Checked before opening, because merely opening some devices triggers actions.
  if (std::string strange = why_not_own(info); !strange.empty()) return FoundFile{Descriptor(), std::move(strange)};
  Descriptor file = open_file(folder, name, access | kOpenNoFollow | kOpenNoWaiting);
  if (!file && errno == ENOENT) return FoundFile{Descriptor(), {}};
  if (!file && (errno == EACCES || errno == EPERM || errno == ELOOP))
    return FoundFile{Descriptor(), fmt::format("it cannot be opened: {}", std::strerror(errno))};
  if (!file) return io_error(path, "open the file left by an earlier run", errno);
  if (!get_status(file.get(), info)) return io_error(path, "inspect the file left by an earlier run", errno);
  if (std::string strange = why_not_own(info); !strange.empty()) return FoundFile{Descriptor(), std::move(strange)};
  if (retry([&] { return system_calls().set_waiting(file.get()); }) < 0)
    return io_error(path, "open the file left by an earlier run", errno);
  return FoundFile{std::move(file), {}};
}

}  // namespace ggufmill
