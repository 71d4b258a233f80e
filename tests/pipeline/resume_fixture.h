#pragma once
// A job that ends early and is gone on with: a model of 12 tensors, so of 12 units, and two outputs.

#include <map>
#include <string>
#include <vector>

#include "pipeline/api/ggufmill.h"
#include "tests/support/temp_dir.h"

namespace ggufmill::testing {

const Context& resume_context();  // of the reference kernels, made once

// The source and a folder for the outputs: one in three shards of Q8_0, one file of Q4_0.
class JobFolder {
 public:
  JobFolder();
  void write_model(float first);

  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string out(const std::string& name) const { return folder_.file("out/" + name); }
  std::vector<std::string> outputs() const;  // all that is in the outputs' folder

  Plan plan() const;
  // What the files hold that a run has finished, by name.
  std::map<std::string, std::string> finished() const;

 private:
  TempDir folder_;
};

// The plain engine, in slabs of a tensor each.
RunOptions simple(bool overwrite = false);

// A run that must succeed.
RunReport ran(const Plan& plan, const RunOptions& options = simple());
std::map<std::string, std::string> right_outputs();

// The error of a run that is stopped at its k-th system call.
Error stopped_at(const Plan& plan, int k, RunOptions options = simple());
// The system calls of a run to its end, in a folder of its own.
int calls_of_a_run();
// A run that is stopped where about half of the units are done.
Error stopped_halfway(const Plan& plan, RunOptions options = simple());

}  // namespace ggufmill::testing
