#include "stages/quantize/decide.h"

#include <fmt/format.h>

namespace ggufmill {
namespace {

bool fits(const TypeInfo& type, const Shape& shape) { return shape.columns() % type.block_elements == 0; }

Decision kept(const Tensor& tensor, std::string reason) { return {tensor.type, std::move(reason)}; }

}  // namespace

Result<const Rule*> Decider::first(const std::vector<Rule>& rules, const TensorFacts& facts,
                                   const TypeInfo* type) const {
  const ConditionContext context{model_, recipe_.models, type};
  for (const Rule& rule : rules) {
    BOOST_OUTCOME_TRY(const bool match, holds(rule.condition, facts, context));
    if (match) return &rule;
  }
  return static_cast<const Rule*>(nullptr);
}

Result<TensorRule*> Decider::user_rule(const Tensor& tensor) const {
  for (TensorRule& rule : rules_) {
    BOOST_OUTCOME_TRY(const bool match, rule.match.matches(tensor.name));
    if (match) return &rule;
  }
  return static_cast<TensorRule*>(nullptr);
}

Result<Decision> Decider::by_recipe(const Tensor& tensor) {
  Decision decision{recipe_.type, recipe_.name};
  if (pure_) return decision;
  const TensorFacts facts = places_.next(tensor);
  for (const auto* rules : {&recipe_.rules, &recipe_.adjust}) {
    BOOST_OUTCOME_TRY(const Rule* rule, first(*rules, facts, decision.type));
    if (rule) decision = {rule->type, rule->text};
  }
  return decision;
}

// A type whose blocks the rows cannot fill gives way to its fallback, and that to the last one.
Decision Decider::fit(Decision decision, const Tensor& tensor) const {
  if (fits(*decision.type, tensor.shape)) return decision;
  const std::string why = fmt::format("{}; rows of {} are no whole blocks of {}", decision.reason,
                                      tensor.shape.columns(), decision.type->name);
  const auto fallback = recipe_.fallback.find(decision.type);
  const TypeInfo* type = fallback == recipe_.fallback.end() ? nullptr : fallback->second;
  if (type && !fits(*type, tensor.shape)) type = recipe_.last_fallback;
  if (type && fits(*type, tensor.shape)) return {type, why};
  Decision stays = kept(tensor, why + ": kept");
  stays.misfit = !recipe_.keep_misfits;
  return stays;
}

Result<Decision> Decider::decide(const Tensor& tensor) {
  BOOST_OUTCOME_TRY(TensorRule * user, user_rule(tensor));
  if (user) user->used = true;
  if (tensor.type->type_class == TypeClass::kInteger) return kept(tensor, "integers are carried");
  const TensorFacts facts{&tensor, class_of(tensor.name), 0, 0, 0};
  BOOST_OUTCOME_TRY(const Rule* keep, first(recipe_.keep, facts, tensor.type));
  if (keep) return kept(tensor, "kept: " + keep->text);
  if (user) return user->type ? fit({user->type, user->text}, tensor) : kept(tensor, "kept: " + user->text);
  BOOST_OUTCOME_TRY(Decision decision, by_recipe(tensor));
  return decision.type ? fit(std::move(decision), tensor) : kept(tensor, decision.reason);
}

}  // namespace ggufmill
