#include "stages/importance/selection.h"

namespace ggufmill {
namespace {

Result<bool> any_matches(const std::vector<Pattern>& patterns, std::string_view name) {
  for (const Pattern& pattern : patterns) {
    BOOST_OUTCOME_TRY(const bool found, pattern.matches(name));
    if (found) return true;
  }
  return false;
}

}  // namespace

Result<bool> Selection::keeps(std::string_view name) const {
  BOOST_OUTCOME_TRY(const bool excluded, any_matches(exclude, name));
  if (excluded || include.empty()) return !excluded;
  return any_matches(include, name);
}

}  // namespace ggufmill
