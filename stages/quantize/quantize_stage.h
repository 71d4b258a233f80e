#pragma once
// The stage `quantize`: decides the type of every tensor, by a recipe, a type, and the user's rules.

#include "pipeline/core/stage.h"

namespace ggufmill {

// `reader` parses recipe files.
StageSpec quantize_stage(ConfigReader reader);

}  // namespace ggufmill
