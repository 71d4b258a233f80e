#include "tests/support/shared_data.h"

#include <cstdlib>

#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {

std::optional<fs::path> shared_data() {
  const char* chosen = std::getenv("GGUFMILL_SHARED");
  const fs::path folder = chosen != nullptr && *chosen != '\0' ? chosen : "../shared";
  if (!fs::is_directory(folder / "golden")) return std::nullopt;
  return folder;
}

}  // namespace ggufmill
