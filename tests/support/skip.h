#pragma once
// The way in which test programs report that they cannot run on this machine.

namespace ggufmill {

// Exit code for it, as configured in ctest.
constexpr int kSkippedExitCode = 77;

}  // namespace ggufmill
