#include "stages/quantize/recipe_from.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "pipeline/config/yaml_words.h"
#include "pipeline/core/text.h"
#include "stages/quantize/quantize_stage.h"

namespace ggufmill {
namespace {

constexpr std::size_t kMaxPattern = 3000;  // bytes of one rule's pattern; the limit for compilation is 4096

// Returns a tensor's name without its layer: "ffn_down.weight" for "blk.3.ffn_down.weight".
std::string part_of(const std::string& name) {
  return layer_of(name) ? name.substr(name.find('.', name.find('.') + 1) + 1) : name;
}

struct Part {
  bool has_layers = false;
  std::map<const TypeInfo*, std::set<std::uint64_t>> layers;  // layers by type
};

// Returns a pattern that matches all tensors of this part with this type.
std::string pattern_of(const std::string& name, const Part& part, const TypeInfo* type) {
  if (!part.has_layers) return regex_literal(name);
  const bool all = part.layers.size() == 1;
  return fmt::format("blk\\.{}\\.{}", all ? "\\d+" : fmt::format("({})", fmt::join(part.layers.at(type), "|")),
                     regex_literal(name));
}

}  // namespace

Result<std::string> recipe_from(const Model& model, const std::string& of, const RecipeCatalog& catalog) {
  BOOST_OUTCOME_TRY(const Recipe base, recipe_of_target(catalog));
  std::vector<TensorRule> no_rules;
  const ModelFacts facts = facts_of(model);
  Decider decider(base, no_rules, false, true, facts);
  std::map<std::string, Part> parts;
  std::map<const TypeInfo*, std::uint64_t> weights;
  for (const Tensor& tensor : model.tensors) {
    BOOST_OUTCOME_TRY(const Decision decision, decider.decide(tensor));
    if (!decision.is_open) continue;
    const auto layer = layer_of(tensor.name);
    Part& part = parts[part_of(tensor.name)];
    part.has_layers = layer.has_value();
    part.layers[tensor.type].insert(layer.value_or(0));
    weights[tensor.type] += tensor.shape().elements();
  }
  if (weights.empty()) return usage_error(fmt::format("{} has no tensor that a recipe converts", of));
  const TypeInfo* most = std::ranges::max_element(weights, {}, [](const auto& each) {
                           return std::pair(each.second, each.first->name);
                         })->first;
  std::string text = fmt::format("description: {}\nextends: base\ntype: {}\nrules:{}\n",
                                 yaml_quoted("the types of " + of), most->name, weights.size() == 1 ? " []" : "");
  std::vector<const TypeInfo*> types;
  for (const auto& each : weights)
    if (each.first != most) types.push_back(each.first);
  std::ranges::sort(types, {}, &TypeInfo::name);
  for (const TypeInfo* type : types) {
    std::string pattern;
    const auto write = [&] {
      if (!pattern.empty())
        text += fmt::format("  - {{match: {}, type: {}}}\n", yaml_quoted(fmt::format("^({})$", pattern)), type->name);
      pattern.clear();
    };
    for (const auto& [name, part] : parts) {
      if (!part.layers.count(type)) continue;
      const std::string more = pattern_of(name, part, type);
      if (!pattern.empty() && pattern.size() + more.size() > kMaxPattern) write();
      pattern += (pattern.empty() ? "" : "|") + more;
    }
    write();
  }
  return text;
}

}  // namespace ggufmill
