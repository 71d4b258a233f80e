#pragma once
// One line of tests/golden/files.tsv, run through the program under test.

#include <map>
#include <string>
#include <vector>

namespace ggufmill::golden {

struct FileCase {
  std::string model;       // "tiny-llama"; "tiny-llama+Q8_0": what quantizing that one gave
  std::string importance;  // "none", "gguf" or "dat"
  std::string arguments;   // as for llama-quantize: options, then the type
  bool refused = false;
  std::string input_sha256;
  std::string output_sha256;  // empty where refused
};

std::string describe(const FileCase& file_case);
// Throws std::runtime_error for a table that is none.
std::vector<FileCase> load_file_cases(const std::string& path);

enum class Way { kQuantize, kPipeline };  // `ggufmill quantize`; `ggufmill run` of what --emit-pipeline printed

// Runs cases in folders below `folder`, one for each model, whose inputs are made when first needed. Not thread-safe.
class FileCaseRunner {
 public:
  // `isa`: passed on as --isa; empty: the program's choice.
  FileCaseRunner(std::string program, std::string isa, std::string folder)
      : program_(std::move(program)), isa_(std::move(isa)), folder_(std::move(folder)) {}

  // What is wrong, or an empty string. Throws std::exception when the case cannot be run.
  std::string run(const FileCase& file_case, Way way);

 private:
  struct Inputs {
    std::string folder;  // holds model.gguf, imatrix.gguf and imatrix.dat
    std::string sha256;  // of model.gguf
  };
  const Inputs& inputs_of(const std::string& model);
  void make_inputs(const std::string& model, const std::string& folder);
  std::vector<std::string> with_isa(std::vector<std::string> words) const;

  std::string program_, isa_, folder_;
  std::map<std::string, Inputs> inputs_;  // by model
};

}  // namespace ggufmill::golden
