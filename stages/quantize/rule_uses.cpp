#include "stages/quantize/rule_uses.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "stages/quantize/quantize_stage.h"

namespace ggufmill {
namespace {

std::string no_effect(const TensorRule& rule, std::string_view why) {
  return fmt::format("the rule {}{} changes no tensor: {}", quoted_name(rule.match.text()),
                     rule.type ? fmt::format(" for {}", rule.type->name) : "", why);
}

std::string earlier(std::uint64_t tensors) {
  return tensors == 1 ? "an earlier rule decides the only tensor that matches"
                      : fmt::format("earlier rules decide all {} tensors that match", tensors);
}

Result<std::uint64_t> count_matches(const Pattern& pattern, const Model& model) {
  std::uint64_t count = 0;
  for (const Tensor& tensor : model.tensors) {
    BOOST_OUTCOME_TRY(const bool match, pattern.matches(tensor.name));
    count += match ? 1 : 0;
  }
  return count;
}

// Returns the part of a tensor's name that a pattern probably means: 'attn_output' for 'atn_output'.
std::string suggestion(const Pattern& pattern, const Model& model) {
  constexpr std::size_t kMaxParts = 1000;  // a model has a few dozen
  std::vector<std::string> parts;
  for (const Tensor& tensor : model.tensors)
    for (std::string_view rest = tensor.name; !rest.empty() && parts.size() < kMaxParts;) {
      const std::string_view part = rest.substr(0, rest.find('.'));
      rest.remove_prefix(std::min(rest.size(), part.size() + 1));
      if (part.size() > 3 && std::ranges::find(parts, part) == parts.end()) parts.emplace_back(part);
    }
  const std::string near = did_you_mean(pattern.text(), parts);
  return near.empty() ? near : fmt::format("; did you mean '{}'?", near);
}

}  // namespace

Result<Model> with_recipe(const Recipe& recipe, Model model, const RecipeCatalog& catalog) {
  QuantizeStageOptions options;
  options.recipe = recipe;
  return make_quantize_stage(std::move(options), catalog)->apply(std::move(model));
}

Result<std::vector<RuleUse>> rule_uses(const Recipe& recipe, const Model& model, const RecipeCatalog& catalog) {
  BOOST_OUTCOME_TRY(const Model made, with_recipe(recipe, model, catalog));
  std::vector<RuleUse> uses;
  for (const auto* rules : {&recipe.keep, &recipe.rules, &recipe.adjust})
    for (const Rule& rule : *rules) {
      const std::string reason = rules == &recipe.keep ? "kept: " + rule.text : rule.text;
      const auto decides = [&](const Tensor& tensor) {
        return tensor.reason == reason || tensor.reason.starts_with(reason + "; ");
      };
      uses.push_back({reason, static_cast<std::uint64_t>(std::ranges::count_if(made.tensors, decides))});
    }
  return uses;
}

Status check_rules_used(const std::vector<TensorRule>& rules, bool warns, Model& model) {
  Diagnostics unused;
  for (const TensorRule& rule : rules) {
    if (rule.optional || rule.decided || (rule.used && rule.kept.empty())) continue;
    std::string why = rule.kept;
    if (!rule.used) {
      BOOST_OUTCOME_TRY(const std::uint64_t hidden, count_matches(rule.match, model));
      if (!warns)
        unused.add(hidden == 0 ? no_match(rule.match, rule.origin)
                               : error_at(rule.origin, no_effect(rule, earlier(hidden)), "move it before them"));
      why = hidden == 0 ? "no tensor matches" + suggestion(rule.match, model) : earlier(hidden);
    }
    if (rule.used || warns) model.warnings.push_back(no_effect(rule, why));
  }
  if (!unused.empty()) return unused.together();
  return ok();
}

}  // namespace ggufmill
