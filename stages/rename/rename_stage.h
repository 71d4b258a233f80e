#pragma once
// The stage `rename`: new names for tensors, by regular expressions.

#include "pipeline/core/stage.h"

namespace ggufmill {

// `rename: [{match: '^model\.layers\.(\d+)', to: 'blk.$1'}]`: each rule in turn replaces its first match in the name
// that the rules before it left. A rule that matches no tensor is an error, and so are two tensors of one name. What is
// attached to a tensor (importance) stays with it.
StageSpec rename_stage();

}  // namespace ggufmill
