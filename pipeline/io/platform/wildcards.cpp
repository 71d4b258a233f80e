// Paths that fit a pattern, found in the same way on all systems.

#include <algorithm>
#include <string_view>

#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"

namespace ggufmill {
namespace {

#ifdef _WIN32
constexpr std::string_view kWildcards = "*?[";
#else
constexpr std::string_view kWildcards = "*?[\\";  // matches_wildcards() removes the backslash
#endif

class PathSearch {
 public:
  // Adds the paths that begin with `before` and continue with what fits `rest`. Returns false beyond the limit.
  bool add(std::string before, std::string_view rest) {  // NOLINT(misc-no-recursion): once for each folder of a path
    const std::size_t begin = plain_bytes(rest);
    before += rest.substr(0, begin);
    rest.remove_prefix(begin);
    if (rest.empty()) {
      FileStatus ignored;
      if (!take(1)) return false;
      if (get_status(kCurrentFolder, before, Links::kNoFollow, ignored)) paths_.push_back(std::move(before));
      return true;
    }
    const std::size_t end = part_bytes(rest);
    const bool is_last = end == rest.size();
    const std::string part(rest.substr(0, end));
    int error = 0;
    const std::vector<std::string> names = names_in_folder(before.empty() ? "." : before, error);
    if (!take(1 + names.size())) return false;
    for (const std::string& name : names) {
      if ((name.starts_with('.') && !part.starts_with('.')) || !matches_wildcards(part, name)) continue;
      if (is_last)
        paths_.push_back(before + name);
      else if (!add(before + name + rest[end], rest.substr(end + 1)))
        return false;
    }
    return true;
  }

  std::vector<std::string> release() {
    std::sort(paths_.begin(), paths_.end());
    return std::move(paths_);
  }

 private:
  // Number of bytes before the first separator.
  static std::size_t part_bytes(std::string_view path) {
    std::size_t end = 0;
    while (end < path.size() && !is_separator(path[end])) ++end;
    return end;
  }

  // Number of bytes of the leading names without wildcards, with their separators.
  static std::size_t plain_bytes(std::string_view path) {
    std::size_t done = 0;
    while (done < path.size()) {
      const std::size_t part = part_bytes(path.substr(done));
      if (path.substr(done, part).find_first_of(kWildcards) != std::string_view::npos) break;
      done = std::min(path.size(), done + part + 1);
    }
    return done;
  }

  bool take(std::size_t names) {
    looked_at_ += names;
    return looked_at_ <= kMaxLookups;
  }

  std::vector<std::string> paths_;
  std::size_t looked_at_ = 0;  // names
};

}  // namespace

std::optional<std::vector<std::string>> paths_matching(const std::string& pattern) {
  PathSearch search;
  if (!search.add({}, pattern)) return {};
  return search.release();
}

}  // namespace ggufmill
