#pragma once
// A plan with its source file in a temporary folder, for running engines, and the expected bytes of its outputs.

#include <memory>
#include <string>
#include <vector>

#include "pipeline/graph/engine.h"
#include "tests/support/plan_maker.h"
#include "tests/support/temp_dir.h"

namespace ggufmill::testing {

// Returns the built-in reference, loaded once.
const Kernels& reference_kernels();

class EngineFixture {
 public:
  // Fills the source with normally distributed weights, different for every tensor, in the tensor's source type.
  explicit EngineFixture(const std::vector<TensorRecipe>& tensors, std::uint64_t memory = 64 << 20);

  Plan plan;

  Result<RunReport> run(const EngineOptions& options = {}) const {
    return run_plan(plan, reference_kernels(), options);
  }
  // Overwrites bytes of the source at `offset` in tensor `tensor`, and plans again.
  void patch_source(std::size_t tensor, std::uint64_t offset, const std::string& bytes);
  // Returns the offset of tensor `tensor` in the source.
  std::uint64_t source_offset(std::size_t tensor) const;
  std::string path(const std::string& name) const { return folder_.file(name); }
  std::vector<std::string> names() const;  // names in the folder, sorted
  // Returns the contents of the output files and removes them.
  std::vector<std::string> take_outputs() const;
  // Returns their expected contents, computed by calling the kernels on complete matrices.
  std::vector<std::string> expected_outputs() const;

 private:
  void make_plan(std::uint64_t memory);

  std::vector<TensorRecipe> tensors_;
  TempDir folder_;
};

EngineOptions options_for(EngineKind engine);

}  // namespace ggufmill::testing
