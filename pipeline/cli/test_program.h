#pragma once
// Runs verbs in the process of a test, in a temporary folder with a small model.

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/temp_dir.h"

namespace ggufmill::testing {

// The output of a verb and its exit code.
struct Printed {
  int exit_code = 0;
  std::string out, err;
};

// Runs `ggufmill ARGUMENTS...`. Redirects the standard output and error of the process meanwhile, so not thread-safe.
// Throws std::exception if that is impossible.
Printed run_verb(const std::vector<std::string>& arguments);

inline bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

// A folder with model.gguf, two F16 tensors of 256 x 4, and job.yaml, which converts it to out.gguf with Q8_0 and can
// run as a cluster job of two parts that are started by hand.
class VerbFolder {
 public:
  VerbFolder();

  std::string path(const std::string& name) const { return folder_.file(name); }
  bool has(const std::string& name) const { return fs::exists(path(name)); }

 private:
  TempDir folder_;
};

}  // namespace ggufmill::testing
