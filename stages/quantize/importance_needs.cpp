#include "stages/quantize/importance_needs.h"

#include <fmt/format.h>

#include <algorithm>

namespace ggufmill {
namespace {

bool exempt(const Recipe& recipe, const Tensor& tensor) {
  const TensorClass tensor_class = class_of(tensor.name);
  return std::any_of(recipe.importance_exempt.begin(), recipe.importance_exempt.end(),
                     [&](const ClassSet& set) { return set.contains(tensor_class, false); });
}

bool needs(const Recipe& recipe, const Tensor& tensor) {
  const auto& types = recipe.needs_importance;
  return tensor.converted() && std::find(types.begin(), types.end(), tensor.type) != types.end() &&
         !exempt(recipe, tensor);
}

}  // namespace

void find_importance_problems(const Recipe& recipe, Model& model) {
  for (const Tensor& tensor : model.tensors)
    if (tensor.converted() && tensor.importance_fault)
      model.problems.push_back(*tensor.importance_fault);
    else if (!tensor.importance && needs(recipe, tensor))
      model.problems.push_back(
          usage_error(fmt::format("tensor '{}' is to become {}, which gives poor results without an importance matrix",
                                  tensor.name, tensor.type->name),
                      model.notes.get(notes::kImportanceGiven)
                          ? "the importance file has no data for it; choose a larger type for it"
                          : "give one: stages: [{importance: {file: imatrix.gguf}}], or --imatrix imatrix.gguf"));
}

}  // namespace ggufmill
