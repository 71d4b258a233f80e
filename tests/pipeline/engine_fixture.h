#pragma once
// A plan with its source file in a folder of its own, to run engines on, and the bytes that its outputs must have.

#include <memory>
#include <string>
#include <vector>

#include "pipeline/graph/engine.h"
#include "tests/support/plan_maker.h"
#include "tests/support/temp_dir.h"

namespace ggufmill::testing {

// The built-in reference, loaded once.
const Kernels& reference_kernels();

class EngineFixture {
 public:
  // Fills the source with normally distributed weights, different for every tensor, in the tensor's own type.
  explicit EngineFixture(const std::vector<TensorRecipe>& tensors, std::uint64_t memory = 64 << 20);

  Plan plan;

  Result<RunReport> run(const RunOptions& options = {}) const { return run_plan(plan, reference_kernels(), options); }
  // Overwrites bytes of the source at `offset` of tensor `tensor`, and plans anew.
  void patch_source(std::size_t tensor, std::uint64_t offset, const std::string& bytes);
  // Where tensor `tensor` lies in the source.
  std::uint64_t source_offset(std::size_t tensor) const;
  std::string path(const std::string& name) const { return folder_.file(name); }
  std::vector<std::string> names() const;  // what the folder holds, sorted
  // What the output files hold; removes them.
  std::vector<std::string> take_outputs() const;
  // What they must hold, by calling the kernels on whole matrices.
  std::vector<std::string> expected_outputs() const;

 private:
  void make_plan(std::uint64_t memory);

  std::vector<TensorRecipe> tensors_;
  TempDir folder_;
};

RunOptions options_for(EngineKind engine);

}  // namespace ggufmill::testing
