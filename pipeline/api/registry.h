#pragma once
// The registry of everything that a pipeline file can name.

#include <string>
#include <vector>

#include "pipeline/config/registry.h"

namespace ggufmill {

// Returns the registry; `types` are the types of the context, and `maps` folders and files of architecture maps that
// are added to the built-in ones.
Registry make_registry(const Types& types = {}, const std::vector<std::string>& maps = {});

}  // namespace ggufmill
