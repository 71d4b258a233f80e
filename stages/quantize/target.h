#pragma once
// `quantize: {target: ...}`: the types that together lose least in so many bytes, by what was measured.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stages/quantize/decide.h"
#include "stages/quantize/objective.h"

namespace ggufmill {

// What some tensors may have, each with its padding; exactly one of the four sizes is given.
struct TargetBudget {
  std::optional<Pattern> tensors;  // those that match, and no budget before; none: all others, and what is no tensor
  std::optional<std::uint64_t> bytes;  // of all files
  std::optional<double> bits;          // the same for each weight
  std::optional<Recipe> like;          // as many as with this recipe
  std::optional<double> divergence;    // none: the smallest choice whose sum is at most this
  Origin origin{};
};

// Types for some tensors that are not to be better or worse than one, by bits per weight.
struct TypeBound {
  Pattern match;
  const TypeInfo* at_least = nullptr;  // either may be null
  const TypeInfo* at_most = nullptr;
};

struct TargetOptions {
  std::vector<TargetBudget> budgets;               // the last, and no other, has no pattern
  std::vector<const TypeInfo*> candidates;         // at least one
  std::string measured;                            // the measurement's path; empty: `run` measures first
  std::shared_ptr<const Measurement> measurement;  // read from there, or given; null: not yet
  Objective objective;
  bool objective_is_given = false;  // else another takes its place where it says nothing of this model
  Probes probes;
  std::vector<TensorRule> rules;  // tensors of fixed types
  std::vector<Pattern> groups;    // tensors of one layer that match one of these have one type
  std::vector<TypeBound> bounds;
  std::vector<std::string> inputs;  // files that these were read from
  Origin origin{};
};

// What is chosen for the tensors of a model, and what it is worth.
struct BetterType {
  const TypeInfo* type = nullptr;
  std::uint64_t more_bytes = 0;  // what it costs and saves, with the tensors that have the same type by `groups`
  double less_loss = 0;
};
struct ChosenTensor {
  std::size_t tensor = 0;  // index into the model
  std::size_t budget = 0;  // that it counts for
  const TypeInfo* type = nullptr;
  double counts = 0;                 // its sensitivity
  std::optional<BetterType> better;  // the cheapest type that loses less
};
struct Choice {
  std::vector<ChosenTensor> tensors;
  std::uint64_t bytes = 0;  // of these, each with its padding
  double loss = 0;          // the sum
  bool is_proven = true;    // no choice is better

  void add(const Choice& of_others);
};

// The fields beside `tensors` in a mapping of `quantize`, and their reading; all but `target` itself are refused
// without it.
std::vector<FieldSpec> target_fields();
Result<TargetOptions> read_target(const ConfigNode& quantize, const RecipeShelf& shelf);
Status refuse_target_fields(const ConfigNode& quantize);

// A choice for want of a measurement, by the sizes of types alone: it fills the budgets as one by a measurement would.
// Where a budget is a divergence, which no size tells, the tensors get the largest candidates. Errors are those of
// choose_types(): budgets that no choice fits, groups of two budgets, tensors that no candidate fits.
struct AssumedChoice {
  Choice choice;
  std::uint64_t least_bytes = 0, most_bytes = 0;  // that the chosen tensors can have
};
Result<AssumedChoice> assume_types(const TargetOptions& options, const Model& model,
                                   const std::vector<std::size_t>& open, std::uint64_t other_bytes);

// The problem of a model whose types are assumed, with the bytes of tensors that are possible.
Error unmeasured(const Origin& origin, std::uint64_t least_bytes, std::uint64_t most_bytes);
// Whether a problem or error is that one, or says that a measurement is out of date: a measurement mends both.
bool wants_measurement(const Error& error);

// Of all tensors with the types that they have, each with its padding.
std::uint64_t tensor_bytes(const Model& model);

// `open`: the tensors of `model` that are chosen for; the others keep the types that they have by now. `other_bytes`:
// of the files, besides tensors and their padding. Each budget is filled by itself: no tensor counts for two.
Result<Choice> choose_types(const TargetOptions& options, const Model& model, const std::vector<std::size_t>& open,
                            std::uint64_t other_bytes);

// What a choice loses, and how large all tensors are with it.
struct CurvePoint {
  std::string recipe;  // that gives these types; empty: the best choice of that size
  std::uint64_t bytes = 0;
  double loss = 0;
  bool is_target = false;  // what the target itself comes to, with its budgets
};
// The best choices from the smallest to the largest, at most `points` of them at even steps; then the built-in recipes
// whose types were all measured, by size. Of all tensors together, whatever budgets there are. `chosen`: the model with
// the types that the target gives it, which adds its point at the end; null: none.
Result<std::vector<CurvePoint>> choice_curve(const TargetOptions& options, const Model& model,
                                             const std::vector<std::size_t>& open, std::size_t points,
                                             const RecipeShelf& shelf, const Model* chosen = nullptr);

}  // namespace ggufmill
