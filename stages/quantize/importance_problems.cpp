// Problems of tensors without importance or a covariance.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "stages/quantize/decide.h"
#include "stages/quantize/facts.h"

namespace ggufmill {
namespace {

bool exempt(const Recipe& recipe, const Tensor& tensor) {
  const TensorClass tensor_class = class_of(tensor.name);
  return std::any_of(recipe.importance_exempt.begin(), recipe.importance_exempt.end(),
                     [&](const ClassSet& set) { return set.contains(tensor_class, false); });
}

bool needs(const Recipe& recipe, const Tensor& tensor) {
  const auto& types = recipe.needs_importance;
  return tensor.converted() && std::find(types.begin(), types.end(), &ungrouped_type(*tensor.type)) != types.end() &&
         !exempt(recipe, tensor);
}

// Returns one problem for all tensors with types that need importance. `what` and `help` give the cause and are the
// same for every output.
Error no_importance(const std::vector<const Tensor*>& tensors, bool is_given) {
  std::map<std::string_view, std::size_t> counts;
  for (const Tensor* tensor : tensors) ++counts[tensor->type->name];
  std::string types;
  for (const auto& [type, count] : counts) types += fmt::format("{}{} {}", types.empty() ? "" : ", ", count, type);
  Error error =
      is_given ? with_options(
                     usage_error("the importance file has no data for some tensors whose types need it",
                                 "choose larger types for them: tensors: [{match: .., type: ..}]; or take "
                                 "it from the nearest layers: importance: {missing: neighbours, ..}"),
                     fmt::format("choose larger types for them with {}; or take it from the nearest layers: add "
                                 "`missing: neighbours` to `importance` in the pipeline file that {} prints",
                                 option_reference("tensor_type", "PATTERN=TYPE"), option_reference("emit_pipeline")))
               : with_options(usage_error("no importance matrix is given, but some types need one",
                                          "add one: stages: [{importance: {file: imatrix.gguf}}]"),
                              "add one: " + option_reference("imatrix", "imatrix.gguf"));
  const char* tail = tensors.size() == 1 ? "" : tensors.size() == 2 ? " and 1 more" : " and others";
  error.detail = fmt::format("tensors of such types: {} ({}{})", types, quoted_name(tensors.front()->name), tail);
  return error;
}

// The head is often missing: llama-imatrix collects no data for it by default.
bool is_head(const Tensor& tensor) { return class_of(tensor.name) == TensorClass::kOutput; }

// Returns one problem for all tensors whose importance data has the wrong size.
Error wrong_size(const std::vector<const Tensor*>& tensors) {
  Error error = *tensors.front()->importance_fault;
  if (tensors.size() == 1) return error;
  std::vector<std::string> names;
  for (const Tensor* tensor : tensors) names.push_back(quoted_name(tensor->name));
  error.detail = fmt::format("so it is for {} tensors: {}", tensors.size(), list_some(names));
  return with_options(std::move(error),
                      fmt::format("recreate the file with this model, or skip the entries: {} for each",
                                  option_reference("exclude_weights", "NAME")));
}

}  // namespace

void find_importance_problems(const Recipe& recipe, Model& model) {
  std::vector<const Tensor*> without, wrong;
  std::vector<std::string> missed;
  for (const Tensor& tensor : model.tensors)
    if (tensor.converted() && tensor.importance_fault)
      wrong.push_back(&tensor);
    else if (!tensor.importance && needs(recipe, tensor))
      without.push_back(&tensor);
    else if (tensor.importance_is_missing && tensor.converted() && tensor.type->is_quantized() && !is_head(tensor))
      missed.push_back(quoted_name(tensor.name));
  if (!wrong.empty()) model.problems.push_back(wrong_size(wrong));
  if (!missed.empty())
    model.warnings.push_back(fmt::format(
        "the importance file has no data for {}, quantized without importance: {}; in a pipeline file, missing: "
        "neighbours takes it from the nearest layers",
        counted(missed.size(), "tensor"), list_some(missed)));
  if (!without.empty()) model.problems.push_back(no_importance(without, model.notes.get(notes::kImportanceGiven)));
}

void find_missing_covariance(const Origin& origin, Model& model) {
  if (model.notes.get(notes::kCovarianceGiven)) return;
  const auto wants_it = [](const Tensor& tensor) {
    return tensor.encoder.is_covariance() && tensor.converted() && has_covariance(*tensor.type);
  };
  const auto found = std::ranges::find_if(model.tensors, wants_it);
  if (found == model.tensors.end()) return;
  model.problems.push_back(with_options(
      error_at(
          origin,
          fmt::format("no covariance is given, but the encoder of tensor {} is 'covariance'", quoted_name(found->name)),
          "add one: stages: [{importance: {covariance: model.covariance.gguf}}]; or choose `encoder: search`"),
      fmt::format("add one: {}; or choose {}", option_reference("covariance", "model.covariance.gguf"),
                  option_reference("encoder", "search"))));
}

}  // namespace ggufmill
