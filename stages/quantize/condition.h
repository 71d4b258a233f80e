#pragma once
// Conditions of a rule: named predicates on a tensor and its model. A rule applies if all of its conditions are true.
// There is no expression language.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/config/bound_fields.h"
#include "pipeline/core/pattern.h"
#include "stages/quantize/facts.h"

namespace ggufmill {

// A range of the n layers, or of the n tensors of a kind; i counts from 0. Divisions round down.
enum class Span {
  kFirstSixteenth,  // i < n/16
  kFirstEighth,     // i < n/8
  kInner,           // n/8 <= i < 7n/8
  kSpread,          // the first and last eighth, and every third in between: where extra bits help most
};

bool within(Span span, std::uint64_t place, std::uint64_t count);

struct Condition {
  std::optional<Pattern> match{};  // matches any part of the tensor name
  std::vector<ClassSet> classes{};
  std::vector<std::string> architectures{}, other_architectures{};  // fields `arch` and `not_arch`
  std::vector<std::string> models{};                                // names of model groups
  std::vector<const TypeInfo*> from{};                              // the type decided so far
  std::optional<std::uint64_t> experts{}, experts_at_least{}, head_groups_at_least{}, layers{}, matrices_at_least{};
  std::optional<std::uint64_t> embedding_at_least{}, vocabulary_at_least{}, multiple_of{};
  std::optional<std::uint64_t> rank_below{}, order_below{};
  std::optional<bool> importance{}, grouped_heads{}, divisible{};
  std::optional<Span> order{}, depth{};
};

// Groups of models by name. A model belongs to a group if at least one of the group's conditions is true.
using ModelGroups = std::map<std::string, std::vector<Condition>>;

// Returns true if the model belongs to a group of one of these names.
bool in_any(const std::vector<std::string>& names, const ModelGroups& groups, const ModelFacts& model);

struct ConditionContext {
  const ModelFacts& model;
  const ModelGroups& groups;
  const TypeInfo* type;  // the type decided so far
};

// Returns true if every predicate of `condition` is true. Fails if matching a pattern is too costly.
Result<bool> holds(const Condition& condition, const TensorFacts& tensor, const ConditionContext& context);

// Options that conditions add to a rule. `types` are those that they can name.
Fields<Condition> condition_fields(const Types& types);
Fields<Condition> model_condition_fields();  // predicates on the model only, for members of groups
Form<ClassSet> class_form();

}  // namespace ggufmill
