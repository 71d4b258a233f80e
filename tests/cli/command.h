#pragma once
// One shell command, with what it says.

#include <string>

namespace ggufmill {

struct CommandResult {
  std::string out;
  std::string err;
  int exit = 0;  // 128 + N after signal N
};

// Runs `sh -c line` in `folder`, without input. Thread-safe. Throws std::system_error when it cannot be started.
CommandResult run_command(const std::string& line, const std::string& folder);

}  // namespace ggufmill
