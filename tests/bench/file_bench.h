#pragma once
// Whole files: ggufmill and llama-quantize in turn, on the same model, with the same threads.

#include <string>
#include <vector>

#include "tests/bench/timing.h"

namespace ggufmill::bench {

struct FileJob {
  std::string ggufmill;        // the program
  std::string llama_quantize;  // the program; empty: ggufmill alone
  std::string model;           // a GGUF
  std::string folder;          // for the outputs; they are removed
  unsigned threads = 2;
  unsigned rounds = 5;  // of which the median counts
};

struct FileTime {
  std::string type;  // a recipe's or a type's name
  double ggufmill_seconds = 0;
  double llama_seconds = 0;  // 0: not run
  bool same_bytes = false;   // of both outputs
};

// Throws std::runtime_error when a program fails, with its command line.
std::vector<FileTime> time_files(const FileJob& job, const std::vector<std::string>& types);

}  // namespace ggufmill::bench
