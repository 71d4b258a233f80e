#include "pipeline/io/platform/paths.h"

#include <dirent.h>
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <string_view>

#include "pipeline/io/platform/process.h"

namespace ggufmill {
namespace {

struct Close {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

std::vector<std::string> names_in_folder(const std::string& folder, int& error) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, Close> opened(::opendir(folder.c_str()));
  error = opened ? 0 : errno;
  if (error == ENOMEM) throw std::bad_alloc();
  while (opened) {
    errno = 0;
    const struct dirent* const entry = ::readdir(opened.get());
    if (!entry) {
      error = errno;
      break;
    }
    if (const std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool matches_wildcards(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

std::string home_folder() { return environment_variable("HOME").value_or(""); }

}  // namespace ggufmill
