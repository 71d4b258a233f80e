#include "stages/huggingface/map/active_rules.h"

#include <algorithm>
#include <utility>

namespace ggufmill::huggingface {
namespace {

bool makes_numbers(const TensorOutput& output) {
  return output.gather != Gather::kRepack && std::ranges::none_of(output.steps, [](const TensorStep& step) {
           return step.operation && step.operation->name == "int32";
         });
}

}  // namespace

Result<ActiveRules> ActiveRules::choose(const Architecture& architecture, const Facts& facts) {
  ActiveRules chosen;
  BOOST_OUTCOME_TRY(chosen.layers_, facts.count(architecture.layers, "the number of layers"));
  for (const CheckpointRule& rule : architecture.tensors) {
    BOOST_OUTCOME_TRY(const bool holds, facts.holds(rule.when));
    if (!holds) continue;
    ActiveRule active;
    active.rule = &rule;
    if (rule.required_in) {
      BOOST_OUTCOME_TRY(active.required_in, facts.flags(*rule.required_in));
    }
    for (const TensorOutput& output : rule.outputs) {
      BOOST_OUTCOME_TRY(const bool wanted, facts.holds(output.when));
      if (!wanted) continue;
      CountByLayer count;
      if (output.count) {
        BOOST_OUTCOME_TRY(count, facts.count_by_layer(*output.count, "the number of experts"));
      }
      active.outputs.push_back(&output);
      active.counts.push_back(std::move(count));
    }
    chosen.rules_.push_back(std::move(active));
  }
  return chosen;
}

bool ActiveRules::has_rule_for(const std::string& name) const {
  const auto matches = [&](const NamePattern& pattern) { return pattern.match(name).has_value(); };
  return std::ranges::any_of(rules_, [&](const ActiveRule& active) {
    return std::ranges::any_of(active.rule->from, matches) ||
           std::ranges::any_of(active.outputs,
                               [&](const TensorOutput* output) { return std::ranges::any_of(output->parts, matches); });
  });
}

bool ActiveRules::makes_weight_of(const std::string& name) const {
  const auto matches = [&](const NamePattern& pattern) { return pattern.match(name).has_value(); };
  return std::ranges::any_of(rules_, [&](const ActiveRule& active) {
    const bool is_from = std::ranges::any_of(active.rule->from, matches);
    return std::ranges::any_of(active.outputs, [&](const TensorOutput* output) {
      return makes_numbers(*output) && (is_from || std::ranges::any_of(output->parts, matches));
    });
  });
}

}  // namespace ggufmill::huggingface
