#pragma once
// Whole files: ggufmill and llama-quantize in turn, on the same model, with the same threads.

#include <string>
#include <vector>

namespace ggufmill::bench {

struct FileJob {
  std::string ggufmill;        // the program
  std::string llama_quantize;  // the program; empty: ggufmill alone
  std::string model;           // a GGUF
  std::string folder;          // for the outputs; they are removed
  unsigned threads = 2;
  unsigned rounds = 5;  // of which the medians count
};

// Medians of one program's runs.
struct ProgramTime {
  double seconds = 0;      // of wall clock
  double cpu_seconds = 0;  // of all threads, the system's part included
  double peak_mebibytes = 0;
};

struct FileTime {
  std::string type;  // a recipe's or a type's name
  ProgramTime ggufmill;
  ProgramTime llama_quantize;  // zeros: not run
  // Medians over the rounds: how many times as long llama-quantize took.
  double ratio = 0;
  double cpu_ratio = 0;
  bool same_bytes = false;  // of both outputs
};

// Throws std::runtime_error when a program fails, with its command line and what it said.
std::vector<FileTime> time_files(const FileJob& job, const std::vector<std::string>& types);

}  // namespace ggufmill::bench
