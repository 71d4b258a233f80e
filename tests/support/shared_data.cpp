#include "tests/support/shared_data.h"

#include <cstdlib>

namespace ggufmill {

std::optional<std::filesystem::path> shared_data() {
  const char* chosen = std::getenv("GGUFMILL_SHARED");
  const std::filesystem::path folder = chosen != nullptr && *chosen != '\0' ? chosen : "../shared";
  if (!std::filesystem::is_directory(folder / "golden")) return std::nullopt;
  return folder;
}

}  // namespace ggufmill
