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

Result<std::vector<std::string>> Selection::idle(const std::vector<std::string_view>& names) const {
  std::vector<std::string> texts;
  for (const auto* patterns : {&include, &exclude})
    for (const Pattern& pattern : *patterns) {
      bool used = false;
      for (auto name = names.begin(); name != names.end() && !used; ++name) {
        BOOST_OUTCOME_TRY(used, pattern.matches(*name));
      }
      if (!used) texts.push_back(pattern.text());
    }
  return texts;
}

}  // namespace ggufmill
