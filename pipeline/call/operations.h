#pragma once
// The table of all operations.

#include <span>

#include "pipeline/api/operations/operation.h"

namespace ggufmill {

// Returns the operations of all folders that have some, in the order of `ggufmill --help`.
std::span<const OperationSpec> operations();

}  // namespace ggufmill
