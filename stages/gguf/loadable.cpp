#include "stages/gguf/loadable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "pipeline/core/complete_model.h"
#include "pipeline/core/text.h"

namespace ggufmill::gguf {
namespace {

std::optional<std::string_view> text_of(const Model& model, const std::string& key) {
  const MetadataValue* const value = model.metadata.find(key);
  return value ? as_string(*value) : std::nullopt;
}

// Returns true if the file has only the layers that predict further tokens: a draft, which is loaded with its model.
bool is_draft(const Model& model, const std::string& architecture, const std::set<std::uint64_t>& layers,
              std::uint64_t all) {
  const MetadataValue* const value = model.metadata.find(architecture + ".nextn_predict_layers");
  const std::uint64_t nextn = value ? as_unsigned(*value).value_or(0) : 0;
  return nextn > 0 && nextn <= all && !layers.empty() && *layers.begin() >= all - nextn;
}

std::string missing_text(const Model& model, const ModelHoles& holes, const std::set<std::uint64_t>& layers,
                         const std::string& says) {
  std::vector<MissingTensor> missing;
  for (const std::string& name : holes.missing) missing.push_back({name, layer_of(name)});
  return describe_missing(missing, model.tensors.size(), {layers.begin(), layers.end()}, says);
}

}  // namespace

std::string loading_warning(const Model& model) {
  const std::string architecture(text_of(model, "general.architecture").value_or(""));
  // Files with such a type other than "model" are adapters, projectors, and importance files.
  if (architecture.empty() || model.tensors.empty() || text_of(model, "general.type").value_or("model") != "model" ||
      !model.metadata.find(architecture + ".embedding_length"))
    return "";
  ModelHoles holes = find_holes(model);
  if (!holes.is_known || !holes.layers) return "";
  std::set<std::uint64_t> layers;
  for (const Tensor& tensor : model.tensors)
    if (const auto layer = layer_of(tensor.name)) layers.insert(*layer);
  const std::string says = fmt::format("{}.block_count says {}", architecture, counted(*holes.layers, "layer"));
  if (is_draft(model, architecture, layers, *holes.layers))
    std::erase_if(holes.missing, [&](const std::string& name) {
      const auto layer = layer_of(name);
      return !layer || !layers.contains(*layer);
    });
  std::vector<std::string> faults;
  if (!holes.missing.empty()) faults.push_back(missing_text(model, holes, layers, says));
  std::vector<const WrongShape*> wrong;
  for (const WrongShape& each : holes.misshapen)
    if (!each.is_odd) wrong.push_back(&each);
  if (!wrong.empty())
    faults.push_back(fmt::format("tensor {} {}{}", quoted_name(wrong[0]->name), describe(*wrong[0]),
                                 wrong.size() == 1 ? ""
                                                   : fmt::format(", and {} more {} wrong", wrong.size() - 1,
                                                                 wrong.size() == 2 ? "shape is" : "shapes are")));
  if (!layers.empty() && *layers.rbegin() >= *holes.layers)
    faults.push_back(fmt::format("{}, numbered from 0, but there is a layer {}", says, *layers.rbegin()));
  if (!holes.unknown.empty()) faults.push_back(describe_unknown(holes.unknown, model.tensors.size()));
  if (faults.empty()) return "";
  return fmt::format("llama.cpp does not load the model: {}", fmt::join(faults, "; "));
}

}  // namespace ggufmill::gguf
