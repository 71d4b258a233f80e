#pragma once
// Handles Ctrl-C (SIGINT) and SIGTERM: a flag is set, the engine stops, and temporary files are removed unless a later
// run can resume from them.

#include <atomic>
#include <optional>

namespace ggufmill {

// Installs the handlers and returns the flag, which lives as long as the program. A second signal of the same kind
// kills the process immediately.
const std::atomic<bool>* catch_signals();

// Returns 130 after SIGINT, 143 after SIGTERM, and nullopt if no signal arrived.
std::optional<int> signal_exit_code();

}  // namespace ggufmill
