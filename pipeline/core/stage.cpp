#include "pipeline/core/stage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_set>

#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {
namespace {

constexpr Note<std::uint64_t> kParts{"parts"};  // one bit per ModelPart

}  // namespace

std::string_view out_type_name(OutType type) { return kOutTypeWords[static_cast<std::size_t>(type)]; }

std::optional<OutType> out_type_named(std::string_view name) {
  const auto found = std::ranges::find(kOutTypeWords, name);
  if (found == std::end(kOutTypeWords)) return {};
  return static_cast<OutType>(found - std::begin(kOutTypeWords));
}

std::string_view part_name(ModelPart part) { return kModelPartWords[static_cast<std::size_t>(part)]; }

std::string list_parts(std::span<const ModelPart> parts) {
  std::vector<std::string_view> names;
  for (const ModelPart part : parts) names.push_back(part_name(part));
  return fmt::format("{}", fmt::join(names, ", "));
}

void set_parts(Model& model, std::span<const ModelPart> parts) {
  std::uint64_t bits = 0;
  for (const ModelPart part : parts) bits |= std::uint64_t{1} << static_cast<unsigned>(part);
  model.notes.set(kParts, bits);
}

std::vector<ModelPart> parts_of(const Model& model) {
  std::vector<ModelPart> parts;
  for (std::size_t i = 0; i < std::size(kModelPartWords); ++i)
    if (model.notes.get(kParts) >> i & 1) parts.push_back(static_cast<ModelPart>(i));
  return parts;
}

Result<std::vector<Model>> Source::open_parts(std::span<const PartRequest> requests) const {
  std::vector<Model> models;
  if (requests.empty()) return models;
  BOOST_OUTCOME_TRY(Model model, open());  // first: a checkpoint that does not exist is not a GGUF file either
  for (const PartRequest& request : requests)
    if (!request.is_default())
      return error_at(request.origin, "`part` and `outtype` are options of outputs whose source is a checkpoint folder",
                      "omit them, or read the model with `source: {huggingface: ...}`");
  models.assign(requests.size(), std::move(model));
  return models;
}

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
  if (recipe.empty() || name_begin(recipe) != 0)
    return usage_error(recipe.empty() ? "the path contains {recipe}, but no quantize stage names a recipe"
                                      : fmt::format("the recipe's name '{}' cannot be part of a path", recipe));
  for (std::size_t at = 0; (at = path.find(kPlace, at)) != std::string::npos; at += recipe.size())
    path.replace(at, kPlace.size(), recipe);
  return path;
}

}  // namespace ggufmill
