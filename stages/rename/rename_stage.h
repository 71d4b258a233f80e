#pragma once
// The stage `rename`: new names for tensors, by regular expressions.

#include <memory>
#include <string>
#include <vector>

#include "pipeline/config/registry.h"

namespace ggufmill {

struct RenameRule {
  Pattern match;
  std::string to;  // a format string of Pattern::replace
  Origin match_origin{}, to_origin{};
};

struct RenameOptions {
  std::vector<RenameRule> rules;
  Origin origin{};
};

// Each rule in turn replaces its first match in the name that the rules before it left. A rule that matches no tensor
// is an error, and so are two tensors of one name. What is attached to a tensor (importance) stays with it. Refused
// here: a replacement that asks for a group that its pattern lacks, or that cannot be part of a name.
Result<std::unique_ptr<Stage>> make_rename_stage(RenameOptions options);
// `rename: [{match: '^model\.layers\.(\d+)', to: 'blk.$1'}]`.
StageSpec rename_stage();

}  // namespace ggufmill
