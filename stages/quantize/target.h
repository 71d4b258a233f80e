#pragma once
// `quantize: {target: ...}`: chooses the types with the smallest total loss for a given size, according to a
// measurement.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stages/quantize/decide.h"
#include "stages/quantize/objective.h"
#include "stages/quantize/sample.h"

namespace ggufmill {

// A budget for some tensors, including their padding. Exactly one of the four limits is set.
struct TargetBudget {
  // Matching tensors that are in no earlier budget; nullopt: all other tensors, and data outside of tensors.
  std::optional<Pattern> tensors{};
  std::optional<std::uint64_t> bytes{};  // total of all files
  std::optional<double> bits{};          // the same per weight
  std::optional<Recipe> like{};          // the size with this recipe
  std::optional<double> divergence{};    // the smallest choice with at most this sum of losses
  Origin origin{};
};

// Matching tensors of one layer share one type. Groups that have a tensor in common share it, too.
struct TypeGroup {
  Pattern match{};
  Origin origin{};
};

// Bounds on the types of some tensors, compared by bits per weight.
struct TypeBound {
  Pattern match{};
  const TypeInfo* at_least = nullptr;  // either may be null
  const TypeInfo* at_most = nullptr;
  Origin origin{};  // position of `match`
};

struct TargetOptions {
  std::vector<TargetBudget> budgets;               // only the last one has no pattern
  std::vector<const TypeInfo*> candidates;         // at least one; see candidates_of()
  std::vector<const TypeInfo*> narrow_candidates;  // the default ones for narrow rows; empty if the user names some
  std::string measured;                            // path of the measurement; empty: `run` measures first
  std::shared_ptr<const Measurement> measurement;  // read from `measured`, or given; null: not yet
  std::shared_ptr<const Error> measured_fault;     // why `measured` cannot be read; null: it can
  RowSample sample;                                // rows that a measurement reads
  EncodersByType encoders;                         // of types that do not get the tensor's
  Objective objective;
  bool objective_is_given = false;  // false: another objective replaces one that does not apply to this model
  std::string sensitivities;        // path of the probes; empty: none
  Probes probes;
  std::shared_ptr<const Error> probes_fault;  // why `sensitivities` cannot be read; null: it can
  std::vector<TensorRule> rules;              // tensors of fixed types
  std::vector<TypeGroup> groups;
  std::vector<TypeBound> bounds;
  std::vector<std::string> inputs;  // files that these options were read from
  Origin origin{};
};

// A better type for a tensor, its cost and its gain.
struct BetterType {
  const TypeInfo* type = nullptr;
  std::uint64_t more_bytes = 0;  // including the tensors that share a type by `groups`
  double less_loss = 0;
};
struct ChosenTensor {
  std::size_t tensor = 0;  // index into the model
  std::size_t budget = 0;  // the budget it belongs to
  const TypeInfo* type = nullptr;
  double counts = 0;                 // its sensitivity
  std::optional<BetterType> better;  // the cheapest type with a smaller loss
  bool is_cautious = false;          // was not allowed the smallest types, since its importance is little known
};
// The loss of the tensors of a budget, compared to that with the types of the recipe that gives the budget its size.
struct RecipeGain {
  std::string recipe;
  std::size_t budget = 0;
  double loss = 0, recipe_loss = 0;
};
struct Choice {
  std::vector<ChosenTensor> tensors;
  std::uint64_t bytes = 0;               // of the chosen tensors, including padding
  double loss = 0;                       // sum of losses
  bool is_proven = true;                 // no choice is better
  std::vector<RecipeGain> gains{};       // of budgets like a recipe whose types were all measured
  std::vector<std::string> estimated{};  // tensors of Sensitivities::estimated

  void add(const Choice& of_others);
};

// Adds warnings about a choice to the model: about tensors whose importance or sensitivity is little known, and about
// those that any type suits. Sets the note that describes the choice.
void report_choice(const TargetOptions& target, const Choice& choice, Model& model);

// Reads the options of a target in a mapping of `quantize`; nullopt without `target`, which the other options need.
Form<std::optional<TargetOptions>> target_form(const RecipeCatalog& catalog);

// A choice made without a measurement, from the sizes of types only. It fills the budgets as a measured choice would.
// If a budget is a divergence, which does not determine a size, its tensors get the largest candidates. The errors are
// those of choose_types(): budgets that no choice fits, groups that span two budgets, tensors that no candidate fits.
struct AssumedChoice {
  Choice choice;
  std::uint64_t min_bytes = 0, max_bytes = 0;  // possible sizes of the chosen tensors
};
Result<AssumedChoice> assume_types(const TargetOptions& options, const Model& model,
                                   const std::vector<std::size_t>& open, std::uint64_t other_bytes);

// Returns the problem reported for a model with assumed types, with the possible range of tensor sizes.
Error unmeasured(const Origin& origin, std::uint64_t min_bytes, std::uint64_t max_bytes);
// Returns true if measuring fixes the problem or error: it is that of unmeasured(), or an outdated measurement.
bool wants_measurement(const Error& error);

// Returns the size of all tensors with their current types, including padding.
std::uint64_t tensor_bytes(const Model& model);

// Chooses types for the tensors in `open`; the others keep their current types. The measurement must also have those
// whose energy the objective uses: Undecided::energies. `other_bytes`: size of the files without tensors and their
// padding. Budgets are filled independently: every tensor belongs to exactly one. Tensors of little known importance
// get no type below the least of the objective, unless larger types do not fit or are not candidates.
Result<Choice> choose_types(const TargetOptions& options, const Model& model, const std::vector<std::size_t>& open,
                            std::uint64_t other_bytes);

// Loss of a choice, and the resulting size of all tensors.
struct CurvePoint {
  std::string recipe;  // built-in recipe with these types; empty: the best choice of that size
  std::uint64_t bytes = 0;
  double loss = 0;
  bool is_target = false;  // the result of the target itself, with its budgets
};
// Loss by size, with the encoders of a target or, if that is measured, with other ones.
struct Curve {
  std::string encoder{};  // as describe() puts it
  std::vector<CurvePoint> points{};
  std::string other_encoder{};
  std::vector<CurvePoint> other_points{};  // empty: not measured
};
// Returns the best choices from the smallest to the largest, at most `points` of them at even steps; then the built-in
// recipes whose types were all measured and whose own type at least one tensor gets, by size. The sizes are those of
// all tensors together, regardless of budgets. `chosen` is the model with the types chosen for the target, appended as
// the last point; null: none.
Result<std::vector<CurvePoint>> choice_curve(const TargetOptions& options, const Model& model,
                                             const std::vector<std::size_t>& open, std::size_t points,
                                             const RecipeCatalog& catalog, const Model* chosen = nullptr);

}  // namespace ggufmill
