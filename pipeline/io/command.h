#pragma once
// Runs other programs and waits for them to finish.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/secrets.h"

namespace ggufmill {

// Most bytes that are kept of each end of what a program prints on one stream.
inline constexpr std::size_t kKeptOutput = 1 << 20;

struct CommandResult {
  int exit_code = 0;  // 128 + N if it was killed by signal N
  // The program's output. If it is longer than 2 * kKeptOutput bytes, a line with the number of missing bytes replaces
  // the middle.
  std::string out, err;
};

struct CommandOptions {
  // When set, the program gets SIGTERM, after five more seconds SIGKILL, and the call ends with kInterrupted.
  const std::atomic<bool>* stop = nullptr;
  // Longest time that the program may take; then it is ended in the same way, and the call fails with exit code 75.
  std::optional<std::chrono::milliseconds> time_limit{};
  std::vector<std::pair<std::string, std::string>> environment{};  // added to that of this process
  Secrets secrets = Secrets::kRemove;                              // of the environment of this process
  // Receives what the program prints, on either stream, as it arrives.
  std::function<void(std::string_view text)> printed{};
  // The advice to the user if the program fails, for the error of run_and_capture(), or exceeds its time limit.
  std::string help{};
};

// Runs `words[0]`, searched for in PATH, with the remaining words as arguments and /dev/null as standard input. If this
// process is killed meanwhile, the program is killed, too. Fails with exit code 6 if the program does not exist or
// cannot be started.
Result<CommandResult> run_command(const std::vector<std::string>& words, const CommandOptions& options = {});
// Runs a program like run_command() and returns its standard output. An exit code other than 0 is an error (6) with the
// program's standard error as detail.
Result<std::string> output_of(const std::vector<std::string>& words);
// Does the same, but returns standard output followed by standard error; an error contains the last 400 characters of
// them, which usually state the reason.
Result<std::string> run_and_capture(const std::vector<std::string>& words, const CommandOptions& options = {});

// Returns the words as shell syntax, quoted only where necessary.
std::string shell_words(const std::vector<std::string>& words);

}  // namespace ggufmill
