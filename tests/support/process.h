#pragma once
// Other programs, run to their end.

#include <string>
#include <vector>

namespace ggufmill {

struct ProcessResult {
  int exit_code = 0;  // 128 + N: ended by signal N
  std::string out, err;
  double seconds = 0;        // of wall clock
  double cpu_seconds = 0;    // of all its threads, what the system did for it included
  long peak_memory_kib = 0;  // the largest resident set
};

// Runs `words[0]` with the further words as arguments, nothing on its standard input, in `folder` (empty: this
// process's own). `settings` ("NAME=value") are added to the environment. Throws std::system_error when that cannot be
// done or no such program is there. Safe to call from several threads.
ProcessResult run_process(const std::vector<std::string>& words, const std::string& folder = {},
                          const std::vector<std::string>& settings = {});

}  // namespace ggufmill
