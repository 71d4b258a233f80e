#include "pipeline/core/io_mode.h"

#include <algorithm>
#include <array>

namespace ggufmill {

std::span<const std::string> io_mode_names() {
  static const std::array<std::string, 3> names{"cached", "streaming", "direct"};
  return names;
}

std::optional<IoMode> io_mode_named(std::string_view name) {
  const auto names = io_mode_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<IoMode>(found - names.begin());
}

}  // namespace ggufmill
