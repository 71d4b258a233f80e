#pragma once
// Files that `ggufmill schema` generates: reference pages for the contents of pipeline files, recipes and architecture
// maps, which configs/REFERENCE.md combines, and those of the table of operations.

#include <string>

namespace ggufmill {

// Returns Markdown generated from the field tables: the file itself, then one section for each stage and for everything
// that stages refer to.
std::string pipeline_reference();
// Returns the page for recipes, followed by a section on the conditions of their rules.
std::string recipe_reference();
// Returns the page for architecture maps.
std::string architecture_reference();

// Returns the reference of operations in Markdown, configs/OPERATIONS.md: options as the program, C and Python write
// them, and results.
std::string operations_reference();
// Returns the operations as functions of Python, pipeline/python/ggufmill/_operations.py.
std::string operations_in_python();

}  // namespace ggufmill
