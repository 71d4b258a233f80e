#pragma once
// Larger golden data that is kept beside the repository, not in it.

#include <filesystem>
#include <optional>

namespace ggufmill {

// $GGUFMILL_SHARED, or "../shared" from the repository root (where ctest runs the tests); nothing when there is none:
// a test then says that it skips.
std::optional<std::filesystem::path> shared_data();

}  // namespace ggufmill
