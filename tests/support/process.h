#pragma once
// Runs other programs and waits for them.

#include <string>
#include <vector>

namespace ggufmill {

struct ProcessResult {
  int exit_code = 0;  // 128 + N: ended by signal N
  std::string out, err;
  double seconds = 0;        // wall clock
  double cpu_seconds = 0;    // all threads, user and system time
  long peak_memory_kib = 0;  // peak resident set
};

// Runs `words[0]` with the other words as arguments and empty standard input, in `folder` (empty: the folder of this
// process). `settings` ("NAME=value") are added to the environment. Throws std::system_error if the program does not
// exist or cannot be run. Safe to call from several threads.
ProcessResult run_process(const std::vector<std::string>& words, const std::string& folder = {},
                          const std::vector<std::string>& settings = {});

// Returns what the program xz makes of a compressed file.
std::string decompressed(const std::string& path);

}  // namespace ggufmill
