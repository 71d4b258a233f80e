#pragma once
// Programs of the batch system, run to their end.

#include <string>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

struct CommandResult {
  int exit_code = 0;  // 128 + N: ended by signal N
  std::string out, err;
};

// Runs `words[0]`, found in PATH, with the further words as arguments and nothing on its standard input. Exit code 6
// where there is no such program.
Result<CommandResult> run_command(const std::vector<std::string>& words);
// The same, where anything but exit code 0 is an error (6) that says what the program said. Gives its standard output.
Result<std::string> output_of(const std::vector<std::string>& words);

// As a shell reads it: in quotes where it needs any.
std::string shell_word(const std::string& word);
std::string shell_words(const std::vector<std::string>& words);

}  // namespace ggufmill
