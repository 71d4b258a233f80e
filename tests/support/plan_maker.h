#pragma once
// Plans for tests of what works on plans, made by make_plan() from jobs of one source file, one file for each output,
// tensors one after the other. Nothing is opened.

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
  bool importance = false;      // it has some, see importance_value()
  bool big_endian = false;
};

Shape shape_of(std::vector<std::uint64_t> dims);

// Every tensor begins at a multiple of 32 bytes; outputs begin with a header of 64 bytes. Output i is the file
// `folder`/out-i.gguf, the source `folder`/source.gguf, or what `source` says.
Plan plan_of(const std::vector<TensorRecipe>& tensors, const std::string& folder = "", std::uint64_t memory = 64 << 20,
             SourceRef source = nullptr);

// The model that such a plan reads.
Model source_model(const std::vector<TensorRecipe>& tensors, SourceRef source);
std::uint64_t source_bytes(const std::vector<TensorRecipe>& tensors);

// The plan that makes outputs of a model: tensor t becomes types[o][t] in output o, "" leaves it out. For models whose
// tensors have expressions of their own.
Plan plan_for(Model model, const std::vector<std::vector<std::string>>& types, const std::string& folder,
              std::uint64_t memory);

// The weights of matrix m are m + 1 plus a quarter of the column: every one different. They lie behind the tensors of
// the source file, in the order of the recipes.
float importance_value(std::uint64_t matrix, std::uint64_t column);

// All slabs that a plan is cut into.
std::vector<SlabRows> slabs_of(const Plan& plan, std::uint64_t slab_bytes);

}  // namespace ggufmill::testing
