#pragma once
// Generates reference pages for the contents of pipeline files, recipes and architecture maps. configs/REFERENCE.md
// combines all of them.

#include <string>

namespace ggufmill {

// Returns Markdown generated from the field tables: the file itself, then one section for each stage and for everything
// that stages refer to.
std::string pipeline_reference();
// Returns the page for recipes, followed by a section on the conditions of their rules.
std::string recipe_reference();
// Returns the page for architecture maps.
std::string architecture_reference();

}  // namespace ggufmill
