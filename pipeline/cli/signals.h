#pragma once
// Ctrl-C and SIGTERM end a run in order: the flag is set, the engine stops, temporaries are removed.

#include <atomic>
#include <optional>

namespace ggufmill {

// Installs the handlers; the flag lives as long as the program. A second signal of the same kind kills at once.
const std::atomic<bool>* catch_signals();

// 130 after SIGINT, 143 after SIGTERM, nothing when no signal came.
std::optional<int> signal_exit_code();

}  // namespace ggufmill
