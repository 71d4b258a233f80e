#pragma once
// Finds the larger golden data, which is stored next to the repository.

#include <optional>

#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {

// Returns $GGUFMILL_SHARED, or "../shared" from the repository root (where ctest runs the tests). Returns nullopt if it
// does not exist; the test is then skipped with a message.
std::optional<fs::path> shared_data();

}  // namespace ggufmill
