#pragma once
// What may stand in pipeline files, recipes and maps of architectures, as pages to read. configs/REFERENCE.md is all of
// them.

#include <string>

namespace ggufmill {

// Markdown, made of the field tables: the file itself, then a section for each stage, and for what they name.
std::string pipeline_reference();
// The same for recipes, then a section for the conditions of their rules.
std::string recipe_reference();
// The same for maps of architectures.
std::string architecture_reference();

}  // namespace ggufmill
