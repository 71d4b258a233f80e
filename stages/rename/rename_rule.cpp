#include "stages/rename/rename_rule.h"

#include <fmt/format.h>

#include "pipeline/core/text.h"

namespace ggufmill {

// A group that is not there would silently be empty text.
std::string fault_in_replacement(const Pattern& match, std::string_view to) {
  if (!is_utf8(to) || to.find('\0') != to.npos) return "a name is UTF-8 text without zero bytes";
  for (std::size_t i = 0; i + 1 < to.size(); ++i) {
    if (to[i] == '\\') {
      ++i;
    } else if (to[i] == '$' && to[i + 1] >= '1' && to[i + 1] <= '9') {
      const auto group = static_cast<std::size_t>(to[i + 1] - '0');
      if (group > match.groups())
        return fmt::format("'${}' is used, but {} has {} group{}", group, quoted_name(match.text()), match.groups(),
                           match.groups() == 1 ? "" : "s");
    }
  }
  return {};
}

Result<RenameRule> read_rename_rule(const ConfigNode& node) {
  const ConfigNode& match = *node.find("match");
  const ConfigNode& to = *node.find("to");
  BOOST_OUTCOME_TRY(Pattern pattern, Pattern::compile(match));
  const std::string fault = fault_in_replacement(pattern, to.scalar);
  if (!fault.empty())
    return error_at(to, fault, "groups are what stands in ( ) in `match`; write \\$ for the character $");
  return RenameRule{std::move(pattern), to.scalar, match};
}

}  // namespace ggufmill
