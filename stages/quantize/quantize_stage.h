#pragma once
// The stage `quantize`: decides the type of every tensor from a recipe or a type, and the user's rules.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/config/registry.h"
#include "stages/quantize/decide.h"
#include "stages/quantize/target.h"

namespace ggufmill {

// Rearranges rows, of all tensors or of those whose names match.
struct Repacking {
  bool interleaved = true;  // otherwise, interleaved rows are separated
  std::optional<Pattern> match{};
  Origin origin{};  // position of `match`
};

struct QuantizeStageOptions {
  Recipe recipe;                         // from a RecipeCatalog or recipe_of_type(); not partial
  std::vector<TensorRule> rules;         // tried before the recipe's
  bool pure = false;                     // use the recipe's type for all tensors, and none of its rules
  bool requantize = true;                // quantized tensors may be quantized again
  bool fallback = false;                 // for types named by the user; those of a recipe always fall back
  bool misfit_is_given = false;          // the user set `fallback`; for error messages
  bool warns_of_unused_rules = false;    // a rule that decides no tensor is a warning, not an error
  std::optional<Encoder> encoder{};      // of tensors whose rule and type have none; none: the recipe's
  EncodersByType encoders{};             // those of recipe.encoders that the stage itself gives
  std::optional<bool> order_by_layer{};  // the order of llama-quantize, or that of the source; none: the recipe's
  std::optional<Repacking> repack{};
  // Budgets for the tensors that no rule decides. The recipe then has no type.
  std::optional<TargetOptions> target{};
  Origin origin{}, recipe_origin{};
};

// Creates the stage.
std::unique_ptr<Stage> make_quantize_stage(QuantizeStageOptions options, RecipeCatalog catalog);

// A model before types are chosen: in output order, with the types decided by the recipe and the rules, and the list of
// tensors left to the choice.
struct Undecided {
  const TargetOptions* target = nullptr;  // owned by the stage
  Model model;
  std::vector<std::size_t> open;  // indices into model.tensors
  // The same for tensors with a type that are measured, too, because the objective uses their energy. They have the
  // encoder of an open tensor, so that one measurement serves a tensor with and without a type.
  std::vector<std::size_t> energies;
};

// A stage that fills a size.
class TargetStage : public Stage {
 public:
  virtual const TargetOptions& target() const = 0;  // lists what to measure
  // Returns a copy of the stage with a measurement.
  virtual std::unique_ptr<Stage> with_measurement(std::shared_ptr<const Measurement> measurement) const = 0;
  // Returns a copy of the stage that has no measurement, even if the pipeline file names one.
  virtual std::unique_ptr<Stage> without_measurement() const = 0;
  virtual Result<Undecided> undecided(Model model) const = 0;
  // Encoder of the tensors whose rule and type have none; reference_encoder() if none of the stage's is another one.
  virtual Encoder encoder() const = 0;
  // Returns a copy of the stage without a measurement, in which every candidate has this encoder.
  virtual std::unique_ptr<Stage> with_encoder(const Encoder& encoder) const = 0;
};

// Returns the target of a stage that fills a size; null for any other stage.
const TargetOptions* target_of(const Stage& stage);
// Applies the stages of an output up to the one that fills a size; returns nothing if there is none.
Result<std::optional<Undecided>> undecided(std::span<const std::shared_ptr<const Stage>> stages, Model model);

// Returns the specification of `quantize: Q4_K_M` or `quantize: {recipe: Q4_K_M, tensors: [..], ..}`. `types` are the
// types that the stage and recipes can name.
StageSpec quantize_stage(Types types = {});

}  // namespace ggufmill
