#include "stages/quantize/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/core/text.h"
#include "stages/quantize/candidates.h"
#include "stages/quantize/chooser.h"

namespace ggufmill {
namespace {

constexpr std::string_view kUnmeasured = "the target is not measured yet";

// Returns the model with the types that a recipe gives it.
Result<Model> model_like(const Recipe& recipe, const Model& model) {
  Model other = model;
  std::vector<TensorRule> no_rules;
  const ModelFacts facts = facts_of(other);
  Decider decider(recipe, no_rules, false, true, facts);
  for (Tensor& tensor : other.tensors) {
    tensor.type = tensor.expression->type;
    BOOST_OUTCOME_TRY(const Decision decision, decider.decide(tensor));
    tensor.type = decision.type;
  }
  return other;
}

// Returns the number of bytes available to all tensors of a budget.
Result<std::uint64_t> room_in(const Chooser& chooser, const TargetOptions& options, std::size_t at, const Model& model,
                              std::uint64_t other_bytes) {
  const TargetBudget& budget = options.budgets[at];
  if (budget.like) {
    BOOST_OUTCOME_TRY(const Model like, model_like(*budget.like, model));
    return chooser.bytes_in(at, like);
  }
  const std::uint64_t whole =
      budget.bytes ? *budget.bytes
                   : static_cast<std::uint64_t>(*budget.bits * static_cast<double>(chooser.weights(at)) / 8);
  return budget.tensors ? whole : whole - std::min(whole, other_bytes);
}

Result<Choice> fill_budget(const Chooser& chooser, const TargetOptions& options, std::size_t at, const Model& model,
                           std::uint64_t other_bytes) {
  const TargetBudget& budget = options.budgets[at];
  const std::string of = budget.tensors               ? fmt::format(" that match '{}'", budget.tensors->text())
                         : options.budgets.size() > 1 ? " that match no budget"
                                                      : "";
  if (budget.divergence) {
    if (auto choice = chooser.at_most(at, *budget.divergence)) return std::move(*choice);
    return error_at(budget.origin,
                    fmt::format("the best possible choice{} has a loss of {:.4g}, but {:.4g} is requested",
                                of.empty() ? "" : " for tensors" + of, chooser.min_loss(at), *budget.divergence),
                    "request a larger value, or add better types to `candidates`");
  }
  BOOST_OUTCOME_TRY(const std::uint64_t room, room_in(chooser, options, at, model, other_bytes));
  if (room >= chooser.fixed_bytes(at))
    if (auto choice = chooser.within(at, room - chooser.fixed_bytes(at))) return std::move(*choice);
  return error_at(budget.origin,
                  fmt::format("the smallest choice takes {} for the tensors{}, but there is room for {}",
                              human_bytes(chooser.fixed_bytes(at) + chooser.min_bytes(at)), of, human_bytes(room)),
                  "request a larger value, or add smaller types to `candidates` and measure again");
}

// Fails if every budget has room for the largest choice: there is nothing to choose, and the size is not reached.
Status check_largest(const Chooser& chooser, const TargetOptions& options, const Model& model,
                     std::uint64_t other_bytes) {
  std::uint64_t most = 0, room = 0;
  for (std::size_t i = 0; i < options.budgets.size(); ++i) {
    if (options.budgets[i].divergence) return ok();
    BOOST_OUTCOME_TRY(const std::uint64_t room_here, room_in(chooser, options, i, model, other_bytes));
    const std::uint64_t most_here = chooser.fixed_bytes(i) + chooser.max_bytes(i);
    if (room_here <= most_here) return ok();
    most += most_here;
    room += room_here;
  }
  return error_at(options.budgets.front().origin,
                  fmt::format("the largest choice takes {} for the tensors, but there is room for {}",
                              human_bytes(most), human_bytes(room)),
                  "request a smaller value, or add larger types to `candidates`");
}

}  // namespace

std::uint64_t tensor_bytes(const Model& model) { return padded_bytes(model, model.notes.get(notes::kTensorAlignment)); }

void Choice::add(const Choice& of_others) {
  tensors.insert(tensors.end(), of_others.tensors.begin(), of_others.tensors.end());
  bytes += of_others.bytes;
  loss += of_others.loss;
  is_proven = is_proven && of_others.is_proven;
}

namespace {

Result<Choice> choose_with(Chooser& chooser, const TargetOptions& options, const Model& model,
                           const std::vector<std::size_t>& open, std::uint64_t other_bytes) {
  BOOST_OUTCOME_TRY(chooser.prepare(open));
  BOOST_OUTCOME_TRY(check_largest(chooser, options, model, other_bytes));
  Choice all;
  all.estimated = chooser.estimated();
  for (std::size_t i = 0; i < options.budgets.size(); ++i) {
    BOOST_OUTCOME_TRY(const Choice choice, fill_budget(chooser, options, i, model, other_bytes));
    all.add(choice);
    if (const auto& like = options.budgets[i].like) {
      BOOST_OUTCOME_TRY(const Model other, model_like(*like, model));
      if (const auto loss = chooser.loss_of(other, i)) all.gains.push_back({like->name, i, choice.loss, *loss});
    }
  }
  return all;
}

}  // namespace

Result<Choice> choose_types(const TargetOptions& options, const Model& model, const std::vector<std::size_t>& open,
                            std::uint64_t other_bytes) {
  Chooser cautious(options, model);
  auto choice = choose_with(cautious, options, model, open, other_bytes);
  if (choice || !cautious.has_cautious()) return choice;
  // Types that are large enough for caution do not fit.
  Chooser chooser(options, model, false);
  return choose_with(chooser, options, model, open, other_bytes);
}

namespace {

// Returns the measurement of a model in which each additional bit reduces the error to a quarter and all weights matter
// equally.
Result<std::shared_ptr<const Measurement>> assumed_measurement(const TargetOptions& options, const Model& model,
                                                               const std::vector<std::size_t>& open) {
  BOOST_OUTCOME_TRY(const std::vector<Candidates> candidates, candidates_of(options, model, open));
  auto measurement = std::make_shared<Measurement>();
  for (std::size_t place = 0; place < open.size(); ++place) {
    const Tensor& tensor = model.tensors[open[place]];
    MeasuredTensor& measured = measurement->tensors.emplace_back();
    measured.name = tensor.name;
    measured.made_of = measured_identity(tensor, options.encoders);
    measured.shape = tensor.shape();
    measured.energy = 1;
    for (const TypeInfo* type : candidates[place])
      if (tensor.shape().columns() % type->block_elements == 0)
        measured.types.push_back(
            {std::string(type->name), padded_bytes(tensor, *type, 0), std::exp2(-2 * type->bits_per_weight()), 0});
  }
  return std::shared_ptr<const Measurement>(std::move(measurement));
}

}  // namespace

Result<AssumedChoice> assume_types(const TargetOptions& options, const Model& model,
                                   const std::vector<std::size_t>& open, std::uint64_t other_bytes) {
  constexpr std::uint64_t kEverything = std::uint64_t{1} << 60;
  TargetOptions assumed = options;
  BOOST_OUTCOME_TRY(assumed.measurement, assumed_measurement(options, model, open));
  BOOST_OUTCOME_TRY(assumed.objective, find_objective("relative", options.origin));
  for (TargetBudget& budget : assumed.budgets)
    if (budget.divergence) budget.divergence.reset(), budget.bytes = kEverything;
  Chooser chooser(assumed, model);
  BOOST_OUTCOME_TRY(chooser.prepare(open));
  BOOST_OUTCOME_TRY(check_largest(chooser, options, model, other_bytes));
  AssumedChoice all;
  for (std::size_t i = 0; i < assumed.budgets.size(); ++i) {
    BOOST_OUTCOME_TRY(const Choice choice, fill_budget(chooser, assumed, i, model, other_bytes));
    all.choice.add(choice);
    all.min_bytes += chooser.min_bytes(i);
    all.max_bytes += chooser.max_bytes(i);
  }
  return all;
}

Error unmeasured(const Origin& origin, std::uint64_t min_bytes, std::uint64_t max_bytes) {
  return error_at(
      origin,
      fmt::format("{}; the tensors can take {} to {}", kUnmeasured, human_bytes(min_bytes), human_bytes(max_bytes)),
      "`ggufmill run` measures it first; `ggufmill measure` does only that");
}

bool wants_measurement(const Error& error) {
  return error.what.starts_with(kUnmeasured) || error.help == kMeasureAgain;
}

Result<std::vector<CurvePoint>> choice_curve(const TargetOptions& options, const Model& model,
                                             const std::vector<std::size_t>& open, std::size_t points,
                                             const RecipeCatalog& catalog, const Model* chosen) {
  TargetOptions undivided = options;
  undivided.budgets = {options.budgets.back()};
  // Falls back to the simplest objective if the default one does not apply, as when types are chosen.
  const Status prepared = Chooser(undivided, model).prepare(open);
  if (!prepared && !wants_measurement(prepared.error()) && !options.objective_is_given &&
      options.objective.kind == ObjectiveKind::kStream) {
    BOOST_OUTCOME_TRY(undivided.objective, find_objective("relative", options.origin));
  }
  Chooser chooser(undivided, model);
  BOOST_OUTCOME_TRY(chooser.prepare(open));
  const std::uint64_t least = chooser.min_bytes(0), most = chooser.max_bytes(0);
  std::vector<CurvePoint> curve;
  for (std::size_t i = 0; i < points; ++i) {
    const double part = points > 1 ? static_cast<double>(i) / static_cast<double>(points - 1) : 1;
    const auto bytes = least + static_cast<std::uint64_t>(static_cast<double>(most - least) * part);
    const auto choice = chooser.within(0, i + 1 == points ? most : bytes);
    const std::uint64_t all = choice ? chooser.fixed_bytes(0) + choice->bytes : 0;
    if (choice && (curve.empty() || all != curve.back().bytes)) curve.push_back({"", all, choice->loss});
  }
  std::vector<CurvePoint> stock;
  for (const BuiltInRecipe& built_in : catalog.offered()) {
    BOOST_OUTCOME_TRY(const Recipe recipe, catalog.find(std::string(built_in.name)));
    if (recipe.partial || !recipe.type) continue;
    BOOST_OUTCOME_TRY(const Model like, model_like(recipe, model));
    // Does not suit a model without experts, for example, if the recipe's type is meant for experts.
    if (std::ranges::none_of(like.tensors, [&](const Tensor& tensor) { return tensor.type == recipe.type; })) continue;
    if (const auto loss = chooser.loss_of(like)) stock.push_back({recipe.name, tensor_bytes(like), *loss});
  }
  std::ranges::stable_sort(stock, {}, &CurvePoint::bytes);
  curve.insert(curve.end(), stock.begin(), stock.end());
  if (chosen)
    if (const auto loss = chooser.loss_of(*chosen)) curve.push_back({"", tensor_bytes(*chosen), *loss, true});
  return curve;
}

}  // namespace ggufmill
