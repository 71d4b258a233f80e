#include "pipeline/io/platform/program.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>

namespace ggufmill {
namespace {

// The owner of the library or program already controls what it runs; so do root and the user.
bool is_trusted(uid_t owner) {
  struct stat own;
  return owner == 0 || owner == ::geteuid() || (::stat(own_file().c_str(), &own) == 0 && owner == own.st_uid);
}

// Returns true if users other than the owner may write, as members of the file's group. A user's private group has the
// user's number and no other members.
bool is_group_writable(const struct stat& info) {
  return (info.st_mode & S_IWGRP) != 0 && info.st_gid != 0 && info.st_gid != info.st_uid;
}

std::string why_unsafe(const struct stat& info) {
  if (info.st_mode & S_IWOTH) return "everyone may write to it";
  if (is_group_writable(info)) return fmt::format("all members of group {} may write to it", info.st_gid);
  if (is_trusted(info.st_uid)) return {};
  return fmt::format("it belongs to user {}, not to root or to you", info.st_uid);
}

// Owner of files of users that are unknown in a container or to a server. Accepted for folders above a module only.
constexpr uid_t kNobody = 65534;

// Returns why somebody else may replace `path` with another file or folder, from the same checks of the folders above
// it; empty if nobody can. In sticky folders (/tmp), nobody can rename other users' files.
std::string why_replaceable(const std::string& path) {
  std::error_code error;
  std::filesystem::path above = std::filesystem::canonical(path, error);
  if (error) return "it cannot be read: " + error.message();
  while (above != above.parent_path()) {
    above = above.parent_path();
    struct stat info;
    if (::stat(above.c_str(), &info) != 0) return fmt::format("it cannot be read: {}", std::strerror(errno));
    if ((info.st_mode & S_ISVTX) != 0 && info.st_uid == 0) continue;
    if (info.st_uid == kNobody) info.st_uid = 0;
    if (const std::string reason = why_unsafe(info); !reason.empty())
      return fmt::format("it is in '{}', and {}", above.string(), reason);
  }
  return {};
}

}  // namespace

std::string why_untrusted(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return fmt::format("it cannot be read: {}", std::strerror(errno));
  if (std::string reason = why_unsafe(info); !reason.empty()) return reason;
  return why_replaceable(path);
}

std::string why_unsafe_to_load(const std::string& path, bool is_own) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return fmt::format("cannot be read: {}", std::strerror(errno));
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return "is not a regular file";
  info.st_mode &= ~static_cast<mode_t>(S_IWGRP);
  const std::string reason = is_own ? why_unsafe(info) : why_untrusted(path);
  return reason.empty() ? reason : "is not safe to load code from: " + reason;
}

std::shared_ptr<void> open_library(const std::string& path, std::string& reason) {
  // A name without a slash would be searched for in LD_LIBRARY_PATH and in the folders of the system.
  const std::string file = path.find('/') == path.npos ? "./" + path : path;
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const words = ::dlerror();
    reason = fmt::format("cannot be loaded: {}", words ? words : "unknown error");
    if (reason.find(std::strerror(ENOMEM)) != reason.npos || reason.ends_with("out of memory")) throw std::bad_alloc();
  }
  return {library, [](void* handle) {
            if (handle) ::dlclose(handle);
          }};
}

const void* find_symbol(void* library, const char* name) { return ::dlsym(library, name); }

}  // namespace ggufmill
