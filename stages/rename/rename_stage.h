#pragma once
// The stage `rename`: renames tensors with regular expressions.

#include <memory>
#include <string>
#include <vector>

#include "pipeline/config/registry.h"

namespace ggufmill {

struct RenameRule {
  Pattern match;
  std::string to;  // format string for Pattern::replace
  Origin match_origin{}, to_origin{};
};

struct RenameOptions {
  std::vector<RenameRule> rules;
  Origin origin{};
};

// Creates the stage. The rules are applied in order; each replaces its first match in the name left by the preceding
// rules. A rule that matches no tensor is an error, and so are two tensors with the same name. Data attached to a
// tensor (importance) is kept. Creation fails for a replacement that refers to a group missing in its pattern, or that
// cannot be part of a name.
Result<std::unique_ptr<Stage>> make_rename_stage(RenameOptions options);
// Returns the specification of `rename: [{match: '^model\.layers\.(\d+)', to: 'blk.$1'}]`.
StageSpec rename_stage();

}  // namespace ggufmill
