#pragma once
// Files made from the table of operations, which `ggufmill schema operations` prints.

#include <string>

namespace ggufmill {

// Returns the reference of operations in Markdown, configs/OPERATIONS.md: options as the program, C and Python write
// them, and results.
std::string operations_reference();
// Returns the operations as functions of Python, pipeline/python/ggufmill/_operations.py.
std::string operations_in_python();

}  // namespace ggufmill
