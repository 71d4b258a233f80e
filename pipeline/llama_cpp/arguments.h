#pragma once

namespace ggufmill {

// Help of --architectures, which all verbs that read checkpoints have.
inline constexpr const char* kArchitecturesHelp =
    "folder of architecture maps, or one map file, to add to the built-in ones";

}  // namespace ggufmill
