#include "tests/support/shared_data.h"

#include <cstdlib>

#include "pipeline/core/upstream.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {
namespace {

// Returns the folder at `path` in the larger golden data if it has this subfolder.
std::optional<fs::path> folder_with(const char* subfolder, const fs::path& path = {}) {
  const char* chosen = std::getenv("GGUFMILL_SHARED");
  const fs::path all = chosen != nullptr && *chosen != '\0' ? chosen : "../shared";
  const fs::path folder = path.empty() ? all : all / path;
  if (!fs::is_directory(folder / subfolder)) return std::nullopt;
  return folder;
}

}  // namespace

std::optional<fs::path> shared_data() { return folder_with("golden", upstream_version()); }

std::optional<fs::path> unversioned_data() { return folder_with("real"); }

}  // namespace ggufmill
