#include "pipeline/kernels/module_search.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace ggufmill {
namespace {

constexpr const char* kProgram = "/proc/self/exe";

// Whoever owns the program decides already what it runs; so do root and the user.
bool is_trusted(uid_t owner) {
  struct stat program;
  return owner == 0 || owner == ::geteuid() || (::stat(kProgram, &program) == 0 && owner == program.st_uid);
}

}  // namespace

std::string own_module_directory() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink(kProgram, error);
  if (error) return {};
  return (program.parent_path().parent_path() / "lib" / "ggufmill").string();
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
