#include "pipeline/cli/signals.h"

#include <csignal>

#include "pipeline/core/error.h"
#include "pipeline/io/platform/process.h"

namespace ggufmill {
namespace {

std::atomic<bool> stop_requested{false};
std::atomic<int> last_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  last_signal = number;
  stop_requested = true;
}

}  // namespace

const std::atomic<bool>* catch_signals() {
  on_interrupt(on_signal);
  return &stop_requested;
}

std::optional<int> signal_exit_code() {
  if (last_signal == SIGINT) return static_cast<int>(ExitCode::kInterrupted);
  if (last_signal == SIGTERM) return static_cast<int>(ExitCode::kTerminated);
  return {};
}

}  // namespace ggufmill
