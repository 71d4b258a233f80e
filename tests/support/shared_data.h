#pragma once
// Finds the larger golden data, which is stored next to the repository: in the folder $GGUFMILL_SHARED, or in
// "../shared" from the repository root (where ctest runs the tests). The functions return nullopt if their part of it
// does not exist; a test is then skipped with a message.

#include <optional>

#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {

// Returns the folder with the results of the version of llama.cpp that ggufmill follows: golden/, hf/, hf-more/, ...
std::optional<fs::path> shared_data();

// Returns the folder with the data that do not depend on that version: real/ and those of wings.
std::optional<fs::path> unversioned_data();

}  // namespace ggufmill
