#pragma once
// Benchmarks on complete files: runs ggufmill and llama-quantize alternately on the same model with the same number of
// threads.

#include <string>
#include <vector>

namespace ggufmill::bench {

struct FileJob {
  std::string ggufmill;        // the program
  std::string llama_quantize;  // the program; empty: only ggufmill runs
  std::string model;           // a GGUF file
  std::string folder;          // for the outputs, which are removed
  unsigned threads = 2;
  unsigned rounds = 5;  // the medians are reported
};

// Medians over the runs of one program.
struct ProgramTime {
  double seconds = 0;      // wall clock
  double cpu_seconds = 0;  // all threads, user and system time
  double peak_mebibytes = 0;
};

struct FileTime {
  std::string type;  // name of a recipe or a type
  ProgramTime ggufmill;
  ProgramTime llama_quantize;  // zeros: not run
  // Medians over the rounds of the time of llama-quantize divided by the time of ggufmill.
  double ratio = 0;
  double cpu_ratio = 0;
  bool same_bytes = false;  // in both outputs
};

// Throws std::runtime_error if a program fails; the message has its command line and its output.
std::vector<FileTime> time_files(const FileJob& job, const std::vector<std::string>& types);

}  // namespace ggufmill::bench
