#pragma once
// The types that a quantizer chooses for every tensor of a model, for many recipes: as golden figures and as planned by
// the program under test.

#include <map>
#include <string>
#include <vector>

namespace ggufmill::golden {

// The type of each tensor, in the order of the output; kRefused where the recipe does not fit the model.
constexpr const char* kRefused = "-";
using TypesByTensor = std::vector<std::pair<std::string, std::string>>;
// By recipe: "Q4_K_M"; "Q4_K_M+i": with an importance matrix that holds nothing of the model.
using PlanTable = std::map<std::string, TypesByTensor>;

// The first line names the recipes, every further one is a tensor. Throws std::runtime_error.
PlanTable load_plan_table(const std::string& path);

// SHA-256 of "tensor TAB type NEWLINE" of every tensor that is not refused.
std::string digest_of(const TypesByTensor& types);

struct PlanRun {
  PlanTable table;
  double seconds = 0;  // of the slower of two plans: without importance, and with
  long peak_memory_kib = 0;
};

// Plans the recipes for the model of a spec, as a sparse file in `folder`, by one pipeline file without and one with
// importance. Throws std::exception when there is no plan.
PlanRun plan_recipes(const std::string& program, const std::string& spec, const std::vector<std::string>& columns,
                     const std::string& folder);

}  // namespace ggufmill::golden
