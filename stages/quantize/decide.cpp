#include "stages/quantize/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

bool fits(const TypeInfo& type, const Shape& shape) { return shape.columns() % type.block_elements == 0; }

Decision kept(const Tensor& tensor, std::string reason) { return {tensor.type, std::move(reason)}; }

// Every conversion goes through F32, which represents all 16-bit integers exactly, but not all wider ones.
bool is_short_integer(const TypeInfo& type) {
  return type.type_class == TypeClass::kInteger && type.bits_per_weight() <= 16;
}

Status check_target(const Tensor& tensor, const TypeInfo& type) {
  if (tensor.type == &type) return ok();
  if (type.facts.of_activations)
    return input_error("",
                       fmt::format("tensor '{}' would become {}, which llama.cpp creates from activations at run time "
                                   "and cannot read as weights",
                                   tensor.name, type.name),
                       "use Q8_0 for 8-bit weights");
  if (type.type_class == TypeClass::kInteger && !is_short_integer(*tensor.type))
    return input_error("",
                       fmt::format("tensor '{}' is {} and would become {}, which holds integers without a scale",
                                   tensor.name, tensor.type->name, type.name),
                       "use Q8_0 for 8-bit weights; only integers of up to 16 bits can be converted to other integers");
  return ok();
}

}  // namespace

std::string why_plain(const Recipe& recipe, const Tensor& tensor, const TypeInfo& type) {
  const TensorClass tensor_class = class_of(tensor.name);
  if (std::ranges::any_of(recipe.plain_rows, [&](const ClassSet& set) { return set.contains(tensor_class, false); }))
    return "the rows of such a tensor are not interleaved";
  const std::uint64_t rows = tensor.shape().dims[1];
  if (rows % type.group_rows == 0) return {};
  return fmt::format("{} rows are not a multiple of the {} that {} interleaves", rows, type.group_rows, type.name);
}

Error no_match(const Pattern& pattern, const Origin& origin, std::string_view why) {
  return error_at(origin, fmt::format("no tensor matches '{}'", pattern.text()),
                  fmt::format("`ggufmill inspect` lists the tensors{}{}", why.empty() ? "" : "; ", why));
}

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
  decision.named = recipe_.is_type;
  if (pure_) return decision;
  const TensorFacts facts = places_.next(tensor);
  for (const auto* rules : {&recipe_.rules, &recipe_.adjust}) {
    BOOST_OUTCOME_TRY(const Rule* rule, first(*rules, facts, decision.type));
    if (!rule) continue;
    decision = {rule->type, rule->text};
    decision.named = rule->named;
    decision.encoder = rule->encoder;
  }
  return decision;
}

// Replaces a type with interleaved rows by one without, if the rows of the tensor are not interleaved.
Decision Decider::with_rows(Decision decision, const Tensor& tensor) const {
  if (!decision.type->plain) return decision;
  const std::string why = why_plain(recipe_, tensor, *decision.type);
  if (why.empty()) return decision;
  decision.reason += "; " + why;
  decision.type = &ungrouped_type(*decision.type);
  return decision;
}

// Replaces a type whose block size does not divide the row length: first by its fallback, then by the last fallback, if
// fallbacks are allowed. Otherwise the decision is marked as refused.
Decision Decider::fit(Decision decision, const Tensor& tensor, bool fallback) const {
  if (fits(*decision.type, tensor.shape())) return decision;
  decision.reason += fmt::format("; the row length {} is not a multiple of the block size of {}",
                                 tensor.shape().columns(), decision.type->name);
  decision.wanted = decision.type;
  const auto found = recipe_.fallback.find(&ungrouped_type(*decision.wanted));
  const TypeInfo* type = fallback && found != recipe_.fallback.end() ? found->second : nullptr;
  if (type && !fits(*type, tensor.shape())) type = recipe_.last_fallback;
  decision.refused = !type || !fits(*type, tensor.shape());
  decision.type = decision.refused ? &tensor.source_type() : type;
  return decision;
}

Result<Decision> Decider::decide(const Tensor& tensor) {
  BOOST_OUTCOME_TRY(TensorRule * user, user_rule(tensor));
  if (user) user->used = true;
  const bool is_integer = tensor.type->type_class == TypeClass::kInteger;
  // Integer types that GGUF does not support can be converted to the type given by a user's rule.
  const auto keeps = [&](const std::string& why) {
    if (user && user->type && user->kept.empty()) user->kept = fmt::format("{} {}", quoted_name(tensor.name), why);
  };
  if (is_integer && !(is_source_type(*tensor.type) && user && user->type)) {
    keeps("is copied: it has integers");
    return kept(tensor, "integers are copied");
  }
  const TensorFacts facts{&tensor, class_of(tensor.name), 0, 0, 0};
  BOOST_OUTCOME_TRY(const Rule* keep, first(recipe_.keep, facts, tensor.type));
  if (keep && !is_integer) {
    keeps("is kept: " + keep->text);
    return kept(tensor, "kept: " + keep->text);
  }
  if (user && !user->type) return kept(tensor, "kept: " + user->text);
  Decision decision;
  if (user) {
    decision = {user->type, user->text};
    decision.rule = user;
    user->decided = true;
    if (recipe_.counts_all.value_or(false)) places_.next(tensor);
    decision.encoder = user->encoder;
    decision.named = true;
  } else {
    BOOST_OUTCOME_TRY(decision, by_recipe(tensor));
    if (!decision.type) {
      decision = kept(tensor, decision.reason);
      decision.is_open = true;
      return decision;
    }
  }
  if (const Status possible = check_target(tensor, *decision.type); !possible)
    return user ? error_at(user->origin, possible.error().what, possible.error().help) : possible.error();
  const bool fallback = !decision.named || (user ? user->fallback : fallback_);
  return with_rows(fit(std::move(decision), tensor, fallback), tensor);
}

// ---- tensors that cannot have their type ----

namespace {

constexpr std::size_t kTensorsShown = 4;

std::string named_rows(const std::vector<const Tensor*>& tensors) {
  std::string text;
  for (std::size_t i = 0; i < std::min(tensors.size(), kTensorsShown); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", quoted_name(tensors[i]->name), tensors[i]->shape().columns());
  return tensors.size() > kTensorsShown ? text + ", ..." : text;
}

// Lists the weight types whose blocks divide the row lengths of all `tensors`, by increasing bits per weight.
std::string fitting_types(const std::vector<const Tensor*>& tensors, const Types& known) {
  std::uint64_t divisor = 0;
  for (const Tensor* tensor : tensors) divisor = std::gcd(divisor, tensor->shape().columns());
  std::vector<const TypeInfo*> types;
  for (const TypeInfo* type : known.all()) {
    const bool is_weight = type->is_quantized() || !type->facts.partner.empty();
    if (is_weight && !type->facts.of_activations && divisor % type->block_elements == 0) types.push_back(type);
  }
  std::stable_sort(types.begin(), types.end(),
                   [](const TypeInfo* a, const TypeInfo* b) { return a->bits_per_weight() < b->bits_per_weight(); });
  std::string text;
  for (const TypeInfo* type : types) text += fmt::format("{}{}", text.empty() ? "" : ", ", type->name);
  return text;
}

}  // namespace

void Misfits::add(const Decision& decision, const Tensor& tensor) {
  const auto same = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
    return group.rule == decision.rule && group.type == decision.wanted && group.named == decision.named;
  });
  if (same != groups_.end())
    same->tensors.push_back(&tensor);
  else
    groups_.push_back({decision.rule, decision.wanted, decision.named, {&tensor}});
}

std::vector<Error> Misfits::errors(const Origin& asked, bool misfit_is_given, const Types& known) const {
  std::vector<Error> errors;
  for (const Group& group : groups_) {
    const bool one = group.tensors.size() == 1;
    const std::string what =
        one ? fmt::format("tensor {} cannot be {}: its rows of {} elements are not a multiple of the block size {}",
                          quoted_name(group.tensors.front()->name), group.type->name,
                          group.tensors.front()->shape().columns(), group.type->block_elements)
            : fmt::format("{} tensors cannot be {}: their rows are not a multiple of the block size {}: {}",
                          group.tensors.size(), group.type->name, group.type->block_elements,
                          named_rows(group.tensors));
    const Origin& origin = group.rule ? group.rule->origin : asked;
    const bool said = group.rule ? group.rule->misfit_is_given : misfit_is_given;
    const char* way = !group.named ? "; choose one: tensors: [{match: ..., type: ...}]"
                      : !said      ? "; or allow another type in its place: misfit: fallback"
                                   : "";
    const std::string fitting =
        fmt::format("types that fit{}: {}", one ? "" : " all of them", fitting_types(group.tensors, known));
    Error error = error_at(origin, what, fitting + way);
    if (!group.named)
      error =
          with_options(std::move(error), fitting + "; choose one: " + option_reference("tensor_type", "PATTERN=TYPE"));
    errors.push_back(std::move(error));
  }
  return errors;
}

}  // namespace ggufmill
