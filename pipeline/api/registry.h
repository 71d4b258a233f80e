#pragma once
// Everything that a pipeline file can name.

#include "pipeline/config/registry.h"

namespace ggufmill {

const Registry& registry();

}  // namespace ggufmill
