#include "pipeline/kernels/module_search.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace ggufmill {
namespace {

constexpr const char* kProgram = "/proc/self/exe";

// The file that this code is mapped from: libggufmill, or a program that has it linked in. Empty when the system does
// not say.
const std::string& own_file() {
  static const std::string path = [] {
    const auto here = reinterpret_cast<std::uintptr_t>(&own_file);
    std::ifstream maps("/proc/self/maps");  // "7f1c00000-7f1c02000 r-xp 00000000 08:01 1234    /usr/lib/libggufmill.so"
    for (std::string line; std::getline(maps, line);) {
      std::uintptr_t begin = 0, end = 0;
      const std::size_t slash = line.find('/');
      if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2 || here < begin || here >= end)
        continue;
      return slash == std::string::npos ? std::string() : line.substr(slash);
    }
    return std::string();
  }();
  return path;
}

// Whoever owns the library or program decides already what it runs; so do root and the user.
bool is_trusted(uid_t owner) {
  struct stat own;
  return owner == 0 || owner == ::geteuid() || (::stat(own_file().c_str(), &own) == 0 && owner == own.st_uid);
}

}  // namespace

std::string own_module_directory() {
  std::error_code error;
  const std::filesystem::path own = own_file();
  if (own.empty()) return {};
  if (own != std::filesystem::read_symlink(kProgram, error)) return own.parent_path() / "ggufmill";
  return own.parent_path().parent_path() / "lib" / "ggufmill";
}

bool list_modules(const std::string& directory, std::vector<std::string>& paths, std::string& reason) {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (entry->path().extension() == ".so") paths.push_back(entry->path().string());
  if (error) reason = "cannot be read: " + error.message();
  std::sort(paths.begin(), paths.end());
  return !error;
}

std::string why_unsafe(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return fmt::format("cannot be read: {}", std::strerror(errno));
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return "is no file";
  if (info.st_mode & S_IWOTH) return "is not safe to load code from: everyone may write to it";
  if (!is_trusted(info.st_uid))
    return fmt::format("is not safe to load code from: it belongs to user {}, not to root or to you", info.st_uid);
  return {};
}

}  // namespace ggufmill
