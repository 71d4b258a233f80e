#pragma once
// Everything that a pipeline file can name.

#include "pipeline/config/registry.h"

namespace ggufmill {

// `types` are those of a context.
Registry make_registry(const Types& types = {});

}  // namespace ggufmill
