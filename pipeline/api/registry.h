#pragma once
// Everything that a pipeline file can name.

#include "pipeline/core/stage.h"

namespace ggufmill {

const Registry& registry();

}  // namespace ggufmill
