#pragma once
// The conditions of a rule: named predicates over a tensor and its model, all of which must hold. No expressions.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/config/fields.h"
#include "pipeline/core/pattern.h"
#include "stages/quantize/facts.h"

namespace ggufmill {

// A part of the layers, or of the tensors of a kind; n of them, counted from 0. Divisions round down.
enum class Span {
  kFirstSixteenth,  // i < n/16
  kFirstEighth,     // i < n/8
  kInner,           // n/8 <= i < 7n/8
  kSpread,          // the first and the last eighth, and every third between: where more bits help most
};

bool within(Span span, std::uint64_t place, std::uint64_t count);

struct Condition {
  std::optional<Pattern> match;  // found anywhere in the name
  std::vector<ClassSet> classes;
  std::vector<std::string> architectures, other_architectures;  // arch, not_arch
  std::vector<std::string> models;                              // names of model groups
  std::vector<const TypeInfo*> from;                            // the type decided so far
  std::optional<std::uint64_t> experts, experts_at_least, head_groups_at_least, layers, matrices_at_least;
  std::optional<std::uint64_t> rank_below, order_below;
  std::optional<bool> importance, grouped_heads, divisible;
  std::optional<Span> order, depth;
};

// Groups of models by name; a model is in a group when one of its conditions holds.
using ModelGroups = std::map<std::string, std::vector<Condition>>;

struct ConditionContext {
  const ModelFacts& model;
  const ModelGroups& groups;
  const TypeInfo* type;  // decided so far
};

// Whether all that `condition` asks is so. Fails where a pattern is too costly to match.
Result<bool> holds(const Condition& condition, const TensorFacts& tensor, const ConditionContext& context);

// The fields that conditions add to a rule, and their reading. `value` has passed the lint.
std::vector<FieldSpec> condition_fields();
std::vector<FieldSpec> model_condition_fields();  // those that ask for facts of the model, for the members of groups
Result<Condition> read_condition(const ConfigNode& value, const Types& types);

}  // namespace ggufmill
