// Folders of the XDG Base Directory Specification.

#include "pipeline/io/platform/paths.h"
#include "pipeline/io/platform/process.h"

namespace ggufmill {

std::string user_folder(UserFolder kind) {
  const bool is_cache = kind == UserFolder::kCache;
  // The specification says that relative paths are invalid and must be ignored.
  std::string set = environment_variable(is_cache ? "XDG_CACHE_HOME" : "XDG_STATE_HOME").value_or("");
  if (set.starts_with('/')) return set;
  const std::string home = home_folder();
  return home.empty() ? home : home + (is_cache ? "/.cache" : "/.local/state");
}

}  // namespace ggufmill
