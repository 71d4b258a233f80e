#pragma once
// Which entries of an importance file count.

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/pattern.h"

namespace ggufmill {

// Patterns over tensor names, as of --include-weights or --exclude-weights, which take plain text where these take
// regular expressions. At most one of the lists holds something; with neither, all count.
struct Selection {
  std::vector<Pattern> include;
  std::vector<Pattern> exclude;

  Result<bool> keeps(std::string_view name) const;
  // The texts of the patterns that match none of `names`.
  Result<std::vector<std::string>> idle(const std::vector<std::string_view>& names) const;
};

}  // namespace ggufmill
