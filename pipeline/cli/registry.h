#pragma once
// Everything that a pipeline file can name.

#include "pipeline/core/stage.h"

namespace ggufmill {

const Registry& registry();

// Reads a YAML file's text, for the stages that have files of their own (recipes).
std::optional<ConfigDocument> read_document(std::string_view text, const std::string& name, Diagnostics& errors);

}  // namespace ggufmill
