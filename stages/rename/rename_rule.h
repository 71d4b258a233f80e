#pragma once
// One rule of the stage `rename`.

#include <string>
#include <string_view>

#include "pipeline/core/config_node.h"
#include "pipeline/core/pattern.h"

namespace ggufmill {

struct RenameRule {
  Pattern match;
  std::string to;   // a format string of Pattern::replace
  ConfigNode node;  // of `match`, for messages
};

// Reads {match: REGEX, to: TEXT}, linted. The error has the position.
Result<RenameRule> read_rename_rule(const ConfigNode& node);

// What is wrong with `to` as a replacement for `match`, in one line; empty: nothing.
std::string fault_in_replacement(const Pattern& match, std::string_view to);

}  // namespace ggufmill
