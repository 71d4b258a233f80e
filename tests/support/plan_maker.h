#pragma once
// Plans made by hand, for tests of what works on plans: one source file, one file for each output, tensors one after
// the other. Nothing is opened.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/plan/plan.h"

namespace ggufmill::testing {

struct TensorRecipe {
  std::string name;
  Shape shape;
  std::string from;             // type in the source
  std::vector<std::string> to;  // type in each output; "": not in that output
  std::shared_ptr<const Importance> importance;
  bool big_endian = false;
};

Shape shape_of(std::vector<std::uint64_t> dims);

// Every tensor begins at a multiple of 32 bytes; outputs begin with a header of 64 bytes. Output i is the file
// `folder`/out-i.gguf, the source `folder`/source.gguf.
Plan plan_of(const std::vector<TensorRecipe>& tensors, const std::string& folder = "", std::uint64_t memory = 64 << 20);

// The weights of matrix m are m + 1 plus a quarter of the column: every one different.
class SteppedImportance final : public Importance {
 public:
  explicit SteppedImportance(std::uint64_t columns) : columns_(columns) {}
  Result<std::vector<float>> weights(std::uint64_t matrix) const override;
  std::string fingerprint() const override { return "stepped"; }

 private:
  std::uint64_t columns_;
};

}  // namespace ggufmill::testing
