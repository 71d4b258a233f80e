#pragma once
// A job that is interrupted and resumed: a model of 12 tensors, and therefore 12 units, and two outputs.

#include <map>
#include <string>
#include <vector>

#include "pipeline/api/context.h"
#include "tests/support/temp_dir.h"

namespace ggufmill::testing {

const Context& resume_context();  // with the reference kernels, created once

// The source and a folder for the outputs: one in three shards of Q8_0, one file of Q4_0.
class JobFolder {
 public:
  JobFolder();
  void write_model(float first);

  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string out(const std::string& name) const { return folder_.file("out/" + name); }
  std::vector<std::string> outputs() const;  // all names in the outputs' folder

  Plan plan() const;
  // Returns the contents of the finished output files, by name.
  std::map<std::string, std::string> finished() const;

 private:
  TempDir folder_;
};

struct TestOptions : RunOptions {
  std::function<Status(OutputStore&)> when_sealed{};  // see EngineOptions
};
// Returns options for the simple engine.
TestOptions simple(bool overwrite = false);

// Runs the plan, with one tensor per slab.
Result<RunReport> try_run(const Context& context, const Plan& plan, const TestOptions& options = simple());

// Runs the plan, which must succeed.
RunReport ran(const Plan& plan, const TestOptions& options = simple());
std::map<std::string, std::string> right_outputs();

// Returns the error of a run that is stopped at its k-th system call.
Error stopped_at(const Plan& plan, int k, TestOptions options = simple());
// Returns the number of system calls of a complete run in a separate folder.
int calls_of_a_run();
// Returns the error of a run that is stopped when about half of the units are done.
Error stopped_halfway(const Plan& plan, TestOptions options = simple());

}  // namespace ggufmill::testing
