#pragma once
// Creates plans for tests of code that works on plans, with make_plan() from jobs with one source file, one file per
// output, and the tensors in order. No file is opened.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/plan/slabs.h"

namespace ggufmill::testing {

struct TensorRecipe {
  std::string name;
  Shape shape;
  std::string from;             // type in the source
  std::vector<std::string> to;  // type in each output; "": not in that output
  bool importance = false;      // set if it has importance; see importance_value()
  bool big_endian = false;
};

Shape shape_of(std::vector<std::uint64_t> dims);

// Returns a plan in which every tensor begins at a multiple of 32 bytes and outputs begin with a header of 64 bytes.
// Output i is the file `folder`/out-i.gguf. The source is `source`, or `folder`/source.gguf if it is null.
Plan plan_of(const std::vector<TensorRecipe>& tensors, const std::string& folder = "", std::uint64_t memory = 64 << 20,
             SourceRef source = nullptr);

// Returns the model that such a plan reads.
Model source_model(const std::vector<TensorRecipe>& tensors, SourceRef source);
std::uint64_t source_bytes(const std::vector<TensorRecipe>& tensors);

// Returns the plan that converts a model: tensor t gets the type types[o][t] in output o, or is omitted if that is "".
// For models with custom tensor expressions.
Plan plan_for(Model model, const std::vector<std::vector<std::string>>& types, const std::string& folder,
              std::uint64_t memory);

// Returns the weight of a column of matrix m: m + 1 plus a quarter of the column, so that all weights differ. In the
// source file they follow the tensors, in the order of the recipes.
float importance_value(std::uint64_t matrix, std::uint64_t column);

// Returns all slabs that a plan is cut into.
std::vector<SlabRows> slabs_of(const Plan& plan, std::uint64_t slab_bytes);

}  // namespace ggufmill::testing
