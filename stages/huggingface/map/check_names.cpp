#include "stages/huggingface/map/check_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "pipeline/core/text.h"
#include "stages/huggingface/map/tensor_map.h"
#include "stages/huggingface/map/trainer_names.h"

namespace ggufmill::huggingface {
namespace {

// Numbers of a name that a rule matches, but that the model does not have according to config.json.
struct BeyondCount {
  std::optional<std::uint64_t> layer, expert;
  std::uint64_t experts = 0;  // of the layer
};

// Returns the name up to the number of the layer, which the modules of one list share: 'model.layers.'.
std::string_view list_of(const NamePattern& pattern) {
  const std::string_view text = pattern.name().text();
  return text.substr(0, text.find("{layer}"));
}

// Returns the lists whose modules are layers, that is, become `blk.N` in a GGUF file. Maps number other modules in the
// same way, which config.json does not count: 'conv1', 'linear_2'.
std::set<std::string_view> lists_of_layers(const ActiveRules& rules) {
  constexpr std::string_view kBlock = "blk.{layer}.";
  std::set<std::string_view> lists;
  for (const ActiveRule& active : rules.all())
    for (const TensorOutput& output : active.rule->outputs) {
      const std::size_t at = output.name.text().find(kBlock);
      if (at == std::string::npos || (at != 0 && output.name.text()[at - 1] != '.')) continue;
      for (const auto* patterns : {&active.rule->from, &output.parts})
        for (const NamePattern& pattern : *patterns) lists.insert(list_of(pattern));
    }
  return lists;
}

// Returns nullopt if a rule takes the tensor, if none matches its name, or if its number is not that of a layer.
std::optional<BeyondCount> beyond_count_of(const std::string& name, const ActiveRules& rules,
                                           const std::set<std::string_view>& layers) {
  std::optional<BeyondCount> beyond;
  for (const ActiveRule& active : rules.all()) {
    for (const NamePattern& from : active.rule->from)
      if (const auto match = from.match(name)) {
        if (rules.has_layer_of(*match)) return {};
        if (layers.contains(list_of(from))) beyond = BeyondCount{match->numbers.layer, {}};
      }
    for (std::size_t i = 0; i < active.outputs.size(); ++i)
      for (const NamePattern& part : active.outputs[i]->parts)
        if (const auto match = part.match(name); match && !rules.has_layer_of(*match)) {
          if (layers.contains(list_of(part))) beyond = BeyondCount{match->numbers.layer, {}};
        } else if (match) {
          const std::uint64_t experts = active.counts[i].in(match->numbers.layer);
          if (!match->numbers.expert || *match->numbers.expert < experts) return {};
          beyond = BeyondCount{{}, match->numbers.expert, experts};
        }
  }
  return beyond;
}

// Returns the error for tensors of layers and experts beyond the last. `all`: the number of tensors in the checkpoint.
Error beyond_counts(const std::vector<std::pair<std::string, BeyondCount>>& tensors, std::size_t all,
                    std::uint64_t layers, const std::string& config, const std::string& where) {
  BeyondCount last;
  std::vector<std::string> names;
  for (const auto& [name, beyond] : tensors) {
    names.push_back(quoted_name(name));
    last.layer = std::max(last.layer, beyond.layer);
    last.expert = std::max(last.expert, beyond.expert);
    last.experts = std::max(last.experts, beyond.experts);
  }
  std::string said, hold;
  if (last.layer) {
    said = counted(layers, "layer");
    hold = counted(*last.layer + 1, "layer");
  }
  if (last.expert) {
    said += (said.empty() ? "" : " and ") + counted(last.experts, "expert");
    hold += (hold.empty() ? "" : " and ") + counted(*last.expert + 1, "expert");
  }
  return input_error(where,
                     fmt::format("{} says {}, but the weights have {}: {} of {} tensors are beyond, such as {}", config,
                                 said, hold, tensors.size(), all, list_some(names)),
                     fmt::format("use the {0} that belongs to the weights, or correct the number in {0}", config));
}

}  // namespace

Status check_names(const Architecture& architecture, const Facts& facts, const ActiveRules& rules,
                   const std::vector<NamedTensor>& tensors, const std::string& where) {
  BOOST_OUTCOME_TRY(const ModuleRenamer rename, name_renamer(architecture, facts));
  const auto would_be_known = [&](const std::string& name) {
    const auto renamed = rename(name);
    return renamed && renamed.value() && rules.has_rule_for(*renamed.value());
  };
  const std::set<std::string_view> layers = lists_of_layers(rules);
  std::vector<const NamedTensor*> unknown;
  std::vector<std::pair<std::string, BeyondCount>> beyond;
  for (const NamedTensor& tensor : tensors)
    if (!rules.has_rule_for(tensor.name))
      unknown.push_back(&tensor);
    else if (const auto numbers = beyond_count_of(tensor.name, rules, layers))
      beyond.emplace_back(tensor.name_in_file(), *numbers);
  Diagnostics faults;
  if (!unknown.empty())
    for (Error& error : unknown_name_errors(architecture, where, tensors, unknown, would_be_known))
      faults.add(std::move(error));
  if (beyond.size() >= 2) faults.add(beyond_counts(beyond, tensors.size(), rules.layers(), architecture.config, where));
  if (faults.empty()) return ok();
  return faults.together();
}

}  // namespace ggufmill::huggingface
