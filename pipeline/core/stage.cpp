#include "pipeline/core/stage.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_set>

#include "pipeline/core/text.h"

namespace ggufmill {

Status check_unique_names(const Model& model) {
  std::unordered_set<std::string_view> names;
  for (const Tensor& tensor : model.tensors)
    if (!names.insert(tensor.name).second)
      return usage_error(fmt::format("two tensors would be named {}", quoted_name(tensor.name)),
                         "rename one of them first: stages: [{rename: ...}]");
  return ok();
}

Result<std::string> path_with_recipe(std::string path, const std::string& recipe) {
  constexpr std::string_view kPlace = "{recipe}";
  if (path.find(kPlace) == std::string::npos) return path;
  if (recipe.empty() || recipe.find('/') != std::string::npos)
    return usage_error(recipe.empty() ? "the path contains {recipe}, but no quantize stage names a recipe"
                                      : fmt::format("the recipe's name '{}' cannot be part of a path", recipe));
  for (std::size_t at = 0; (at = path.find(kPlace, at)) != std::string::npos; at += recipe.size())
    path.replace(at, kPlace.size(), recipe);
  return path;
}

}  // namespace ggufmill
