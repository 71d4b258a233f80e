#pragma once
// The registry of everything that a pipeline file can name.

#include "pipeline/config/registry.h"

namespace ggufmill {

// Returns the registry; `types` are the types of the context.
Registry make_registry(const Types& types = {});

}  // namespace ggufmill
