#include "stages/quantize/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "pipeline/core/text.h"
#include "stages/quantize/candidates.h"
#include "stages/quantize/solve.h"
#include "stages/quantize/stream_facts.h"

namespace ggufmill {
namespace {

constexpr double kLossScale = 0x1p59;  // sum of the largest losses, scaled to integers

constexpr std::string_view kUnmeasured = "the target is not measured yet";
constexpr std::string_view kMeasureAgain =
    "run `ggufmill measure` again; if `measured` names a file, add --output FILE --overwrite";

std::uint64_t alignment_of(const Model& model) { return model.notes.get(notes::kTensorAlignment); }

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

// A class of the choice: one tensor, or several that share one type. All members have the same types as options.
struct Member {
  std::size_t tensor;  // index into the model
  const MeasuredTensor* measured;
  double counts = 0;
};
struct Group {
  std::size_t budget = 0;
  bool is_cautious = false;  // has no types below the objective's least
  std::vector<Member> members;
  Candidates candidates;
  std::vector<const TypeInfo*> types;  // the candidates that are possible
  std::vector<std::uint64_t> bytes;    // for each type, the sum over all members
  std::vector<double> loss;
};

class Chooser {
 public:
  // `is_cautious`: tensors of little known importance get no type below the objective's least.
  Chooser(const TargetOptions& options, const Model& model, bool is_cautious = true)
      : options_(options), model_(model), is_cautious_(is_cautious) {}
  Chooser(const Chooser&) = delete;  // groups point into the measurement
  Chooser& operator=(const Chooser&) = delete;

  Status prepare(const std::vector<std::size_t>& open) {
    BOOST_OUTCOME_TRY(Measurement own, own_measurement());
    measurement_ = weighted_by_use(own, model_, options_.objective.least_use);
    BOOST_OUTCOME_TRY(divide());
    BOOST_OUTCOME_TRY(check_patterns(open));
    BOOST_OUTCOME_TRY(group(open));
    BOOST_OUTCOME_TRY(count(open));
    for (Group& group : groups_) {
      BOOST_OUTCOME_TRY(add_options(group));
    }
    scale();
    return ok();
  }

  bool has_cautious() const { return std::ranges::any_of(groups_, &Group::is_cautious); }
  const std::vector<std::string>& estimated() const { return estimated_; }
  // Bytes of a budget's tensors that are not open to choice.
  std::uint64_t fixed_bytes(std::size_t budget) const { return fixed_bytes_[budget]; }
  std::uint64_t least_bytes(std::size_t budget) const {
    return sum(budget, [](const Group& g) { return std::ranges::min(g.bytes); });
  }
  std::uint64_t most_bytes(std::size_t budget) const {
    return sum(budget, [](const Group& g) { return std::ranges::max(g.bytes); });
  }
  double least_loss(std::size_t budget) const {
    double loss = 0;
    for (const Group& group : groups_)
      if (group.budget == budget) loss += std::ranges::min(group.loss);
    return loss;
  }
  std::uint64_t weights(std::size_t budget) const {
    std::uint64_t weights = 0;
    for (std::size_t i = 0; i < budget_of_.size(); ++i)
      if (budget_of_[i] == budget) weights += model_.tensors[i].shape().elements();
    return weights;
  }
  // Returns the bytes of all tensors of a budget, with the types that they have in `model`.
  std::uint64_t bytes_in(std::size_t budget, const Model& model) const {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < budget_of_.size(); ++i)
      if (budget_of_[i] == budget) bytes += padded_bytes(model.tensors[i], *model.tensors[i].type, alignment_of(model));
    return bytes;
  }

  // Returns the best choice for a budget's open tensors within `bytes`; nullopt if no choice is that small.
  std::optional<Choice> within(std::size_t budget, std::uint64_t bytes) const { return solve(budget, bytes, false); }
  // Returns the smallest choice whose sum of losses is at most `loss`.
  std::optional<Choice> at_most(std::size_t budget, double loss) const {
    return solve(budget, static_cast<std::uint64_t>(std::min(loss * scale_, kLossScale)), true);
  }
  // Returns the loss with the types that the tensors have in `model`, of one budget or (nullopt) of all; nullopt if one
  // of these types was not measured.
  std::optional<double> loss_of(const Model& model, std::optional<std::size_t> budget = {}) const {
    double loss = 0;
    for (const Group& group : groups_)
      for (const Member& member : group.members) {
        if (budget && group.budget != *budget) continue;
        const MeasuredType* type = member.measured->find(model.tensors[member.tensor].type->name);
        if (!type) return {};
        loss += member.counts * member.measured->relative_square(*type);
      }
    return loss;
  }

 private:
  template <class Function>
  std::uint64_t sum(std::size_t budget, const Function& of) const {
    std::uint64_t sum = 0;
    for (const Group& group : groups_)
      if (group.budget == budget) sum += of(group);
    return sum;
  }

  // Returns how well an entry of a measurement fits a tensor: 2 if it is of this target's sample, whose types are those
  // of this target; 1 if it is of all rows; otherwise 0.
  Result<int> fitness(const MeasuredTensor& measured, const Tensor& tensor) const {
    BOOST_OUTCOME_TRY(const Tensor rows, sampled(tensor, options_.sample));
    if (measured.made_of == measured_identity(rows, options_.encoders)) return 2;
    return measured.made_of == measured_identity(tensor, options_.encoders) ? 1 : 0;
  }

  // Returns the measurement with one entry for each name: the one that fits this model's tensor best if there are
  // several, as other outputs may measure the tensor in other ways.
  Result<Measurement> own_measurement() const {
    std::map<std::string_view, const Tensor*> tensors;
    for (const Tensor& tensor : model_.tensors) tensors.emplace(tensor.name, &tensor);
    std::map<std::string_view, const MeasuredTensor*> entries;
    for (const MeasuredTensor& each : options_.measurement->tensors) {
      const auto [known, is_new] = entries.emplace(each.name, &each);
      if (is_new || !tensors.contains(each.name)) continue;
      BOOST_OUTCOME_TRY(const int before, fitness(*known->second, *tensors.at(each.name)));
      BOOST_OUTCOME_TRY(const int now, fitness(each, *tensors.at(each.name)));
      if (now > before) known->second = &each;
    }
    Measurement own = *options_.measurement;
    std::erase_if(own.tensors,
                  [&](const MeasuredTensor& each) { return entries.at(each.name)->made_of != each.made_of; });
    return own;
  }

  Result<const MeasuredTensor*> measured(const Tensor& tensor) const {
    const auto found = by_name_.find(tensor.name);
    if (found == by_name_.end())
      return error_at(options_.origin, fmt::format("tensor {} was not measured", quoted_name(tensor.name)),
                      std::string(kMeasureAgain));
    BOOST_OUTCOME_TRY(const int fits, fitness(*found->second, tensor));
    if (fits > 0) return found->second;
    return error_at(
        options_.origin,
        fmt::format("tensor {}, its importance data, its encoder or the sample has changed since {} was measured",
                    quoted_name(tensor.name), options_.measured.empty() ? "it" : options_.measured),
        std::string(kMeasureAgain));
  }

  // Assigns each tensor to the first budget that matches it.
  Status divide() {
    const std::vector<TargetBudget>& budgets = options_.budgets;
    fixed_bytes_.assign(budgets.size(), 0);
    std::vector<bool> is_used(budgets.size());
    for (const Tensor& tensor : model_.tensors) {
      std::size_t budget = 0;
      for (; budgets[budget].tensors; ++budget) {
        BOOST_OUTCOME_TRY(const bool fits, budgets[budget].tensors->matches(tensor.name));
        if (fits) break;
      }
      budget_of_.push_back(budget);
      is_used[budget] = true;
    }
    for (std::size_t b = 0; b < budgets.size(); ++b)
      if (budgets[b].tensors && !is_used[b])
        return no_match(*budgets[b].tensors, budgets[b].origin, "an earlier budget may have matched them all");
    return ok();
  }

  // Refuses bounds without any tensor.
  // Refuses groups and bounds that match no open tensor.
  Status check_patterns(const std::vector<std::size_t>& open) const {
    Diagnostics unused;
    const auto check = [&](const auto& pattern) -> Status {
      for (const std::size_t i : open) {
        BOOST_OUTCOME_TRY(const bool fits, pattern.match.matches(model_.tensors[i].name));
        if (fits) return ok();
      }
      unused.add(no_match(pattern.match, pattern.origin, "rules in `tensors` may have matched them all"));
      return ok();
    };
    for (const TypeGroup& group : options_.groups) {
      BOOST_OUTCOME_TRY(check(group));
    }
    for (const TypeBound& bound : options_.bounds) {
      BOOST_OUTCOME_TRY(check(bound));
    }
    if (!unused.empty()) return unused.together();
    return ok();
  }

  Status group(const std::vector<std::size_t>& open) {
    for (const MeasuredTensor& tensor : measurement_.tensors) by_name_.emplace(tensor.name, &tensor);
    BOOST_OUTCOME_TRY(const std::vector<std::size_t> first, first_of_groups(options_, model_, open));
    BOOST_OUTCOME_TRY(std::vector<Candidates> candidates, candidates_of(options_, model_, open));
    std::vector<std::size_t> group_of(open.size());
    std::vector<bool> is_open(model_.tensors.size());
    for (std::size_t place = 0; place < open.size(); ++place) {
      const std::size_t i = open[place];
      is_open[i] = true;
      BOOST_OUTCOME_TRY(const MeasuredTensor* measure, measured(model_.tensors[i]));
      group_of[place] = first[place] == place ? groups_.size() : group_of[first[place]];
      if (first[place] == place) {
        Group& added = groups_.emplace_back();
        added.budget = budget_of_[i];
        added.candidates = std::move(candidates[place]);
      }
      Group& group = groups_[group_of[place]];
      group.members.push_back({i, measure});
      if (group.budget != budget_of_[i]) return two_budgets(group);
    }
    const std::uint64_t alignment = alignment_of(model_);
    for (std::size_t i = 0; i < model_.tensors.size(); ++i)
      if (!is_open[i])
        fixed_bytes_[budget_of_[i]] += padded_bytes(model_.tensors[i], *model_.tensors[i].type, alignment);
    return ok();
  }

  Error two_budgets(const Group& group) const {
    return error_at(options_.origin,
                    fmt::format("tensors {} and {} must have the same type, but belong to two budgets",
                                quoted_name(model_.tensors[group.members.front().tensor].name),
                                quoted_name(model_.tensors[group.members.back().tensor].name)),
                    "make all tensors of a group match the pattern of one budget, or split the group in `groups`");
  }

  Status count(const std::vector<std::size_t>& open) {
    for (const std::size_t i : tensors_with_energy(options_.objective, model_, open)) {
      BOOST_OUTCOME_TRY(measured(model_.tensors[i]));
    }
    std::vector<const MeasuredTensor*> tensors;
    for (const Group& group : groups_)
      for (const Member& member : group.members) tensors.push_back(member.measured);
    StreamFacts facts;
    if (options_.objective.kind == ObjectiveKind::kStream) {
      BOOST_OUTCOME_TRY(facts, stream_facts(options_.objective, model_));
    }
    BOOST_OUTCOME_TRY(Sensitivities found,
                      sensitivities(options_.objective, tensors, measurement_, options_.probes, facts));
    std::size_t next = 0;
    for (Group& group : groups_)
      for (Member& member : group.members) member.counts = found.counts[next++];
    estimated_ = std::move(found.estimated);
    return ok();
  }

  // Returns the first bound that does not allow a type; null: none.
  Result<const TypeBound*> forbids(const TypeInfo& type, const Tensor& tensor) const {
    for (const TypeBound& bound : options_.bounds) {
      BOOST_OUTCOME_TRY(const bool fits, bound.match.matches(tensor.name));
      if (!fits) continue;
      if ((bound.at_least && type.bits_per_weight() < bound.at_least->bits_per_weight()) ||
          (bound.at_most && type.bits_per_weight() > bound.at_most->bits_per_weight()))
        return &bound;
    }
    return static_cast<const TypeBound*>(nullptr);
  }

  static bool is_measured_as(const Member& member, const TypeInfo& type, const Tensor& tensor) {
    return member.measured->find(type.name) && tensor.shape().columns() % type.block_elements == 0;
  }

  // Returns why no candidate is left for a group.
  Status no_candidate(const Group& group) const {
    for (const Member& member : group.members) {
      const Tensor& tensor = model_.tensors[member.tensor];
      const TypeBound* bound = nullptr;
      std::size_t fitting = 0, forbidden = 0;
      for (const TypeInfo* type : group.candidates) {
        if (!is_measured_as(member, *type, tensor)) continue;
        BOOST_OUTCOME_TRY(const TypeBound* by, forbids(*type, tensor));
        ++fitting;
        forbidden += by ? 1 : 0;
        bound = bound ? bound : by;
      }
      if (fitting == 0)
        return error_at(options_.origin,
                        fmt::format("tensor {} was measured as none of the candidates", quoted_name(tensor.name)),
                        std::string(kMeasureAgain));
      if (forbidden == fitting)
        return error_at(bound->origin,
                        fmt::format("no candidate for tensor {} is within the bounds on it", quoted_name(tensor.name)),
                        "change `at_least` or `at_most`, or add a type between them to `candidates`");
    }
    return error_at(options_.origin,
                    fmt::format("no candidate suits all {} tensors that must have the type of {}, because of their "
                                "rows or bounds",
                                group.members.size(), quoted_name(model_.tensors[group.members.front().tensor].name)),
                    "add a type that suits them to `candidates`, or split the group in `groups`");
  }

  Status add_options(Group& group) {
    for (const Member& member : group.members)
      group.is_cautious = group.is_cautious || is_little_known(options_.objective, model_.tensors[member.tensor]);
    if (is_cautious_ && group.is_cautious) {
      BOOST_OUTCOME_TRY(add_options(group, options_.objective.cautious->at_least));
      if (!group.types.empty()) return ok();
    }
    group.is_cautious = false;
    BOOST_OUTCOME_TRY(add_options(group, nullptr));
    if (!group.types.empty()) return ok();
    return no_candidate(group);
  }

  // Adds the candidates that fit and have no fewer bits than `least` (null: any).
  Status add_options(Group& group, const TypeInfo* least) {
    const std::uint64_t alignment = alignment_of(model_);
    for (const TypeInfo* type : group.candidates) {
      if (least && type->bits_per_weight() < least->bits_per_weight()) continue;
      std::uint64_t bytes = 0;
      double loss = 0;
      bool is_whole = true;
      for (const Member& member : group.members) {
        const Tensor& tensor = model_.tensors[member.tensor];
        BOOST_OUTCOME_TRY(const TypeBound* bound, forbids(*type, tensor));
        is_whole = is_whole && !bound && is_measured_as(member, *type, tensor);
        if (!is_whole) break;
        bytes += padded_bytes(tensor, *type, alignment);
        loss += member.counts * member.measured->relative_square(*member.measured->find(type->name));
      }
      if (!is_whole) continue;
      if (!std::isfinite(loss))
        return error_at(options_.origin,
                        fmt::format("the cost of {} for tensor {} is not a finite number", type->name,
                                    quoted_name(model_.tensors[group.members.front().tensor].name)),
                        "measure again; a custom objective may have too large a multiplier");
      group.types.push_back(type);
      group.bytes.push_back(bytes);
      group.loss.push_back(loss);
    }
    return ok();
  }

  void scale() {
    double most = 0;
    for (const Group& group : groups_) most += std::ranges::max(group.loss);
    scale_ = most > 0 ? kLossScale / most : 0;
  }

  // Minimizes losses within a limit of bytes, or bytes within a limit of losses. Each budget has its own tensors, so
  // that the best choices for all budgets together are the best overall.
  std::optional<Choice> solve(std::size_t budget, std::uint64_t limit, bool limits_loss) const {
    std::vector<const Group*> groups;
    std::vector<ChoiceClass> classes;
    for (const Group& group : groups_) {
      if (group.budget != budget) continue;
      groups.push_back(&group);
      ChoiceClass& options = classes.emplace_back();
      for (std::size_t i = 0; i < group.types.size(); ++i) {
        const auto loss = static_cast<std::uint64_t>(group.loss[i] * scale_);
        options.push_back(limits_loss ? ChoiceOption{loss, group.bytes[i]} : ChoiceOption{group.bytes[i], loss});
      }
    }
    const auto solution = solve_choice(classes, limit);
    if (!solution) return {};
    Choice choice;
    choice.is_proven = solution->is_proven;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const std::size_t picked = solution->options[g];
      choice.bytes += groups[g]->bytes[picked];
      choice.loss += groups[g]->loss[picked];
      for (const Member& member : groups[g]->members)
        choice.tensors.push_back({member.tensor, budget, groups[g]->types[picked], member.counts,
                                  next_better(*groups[g], picked), groups[g]->is_cautious});
    }
    return choice;
  }

  // Returns the cheapest type with a smaller loss.
  static std::optional<BetterType> next_better(const Group& group, std::size_t picked) {
    std::optional<BetterType> best;
    for (std::size_t i = 0; i < group.types.size(); ++i) {
      if (group.loss[i] >= group.loss[picked] || group.bytes[i] <= group.bytes[picked]) continue;
      const std::uint64_t more = group.bytes[i] - group.bytes[picked];
      if (!best || more < best->more_bytes) best = {group.types[i], more, group.loss[picked] - group.loss[i]};
    }
    return best;
  }

  const TargetOptions& options_;
  const Model& model_;
  bool is_cautious_;
  Measurement measurement_;  // by use of experts
  std::map<std::string_view, const MeasuredTensor*> by_name_;
  std::vector<std::size_t> budget_of_;  // for each tensor of the model
  std::vector<Group> groups_;
  std::vector<std::uint64_t> fixed_bytes_;  // for each budget
  std::vector<std::string> estimated_;
  double scale_ = 0;
};

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
                                of.empty() ? "" : " for tensors" + of, chooser.least_loss(at), *budget.divergence),
                    "request a larger value, or add better types to `candidates`");
  }
  BOOST_OUTCOME_TRY(const std::uint64_t room, room_in(chooser, options, at, model, other_bytes));
  if (room >= chooser.fixed_bytes(at))
    if (auto choice = chooser.within(at, room - chooser.fixed_bytes(at))) return std::move(*choice);
  return error_at(budget.origin,
                  fmt::format("the smallest choice takes {} for the tensors{}, but there is room for {}",
                              human_bytes(chooser.fixed_bytes(at) + chooser.least_bytes(at)), of, human_bytes(room)),
                  "request a larger value, or add smaller types to `candidates` and measure again");
}

// Fails if every budget has room for the largest choice: there is nothing to choose, and the size is not reached.
Status check_largest(const Chooser& chooser, const TargetOptions& options, const Model& model,
                     std::uint64_t other_bytes) {
  std::uint64_t most = 0, room = 0;
  for (std::size_t i = 0; i < options.budgets.size(); ++i) {
    if (options.budgets[i].divergence) return ok();
    BOOST_OUTCOME_TRY(const std::uint64_t room_here, room_in(chooser, options, i, model, other_bytes));
    const std::uint64_t most_here = chooser.fixed_bytes(i) + chooser.most_bytes(i);
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

std::uint64_t tensor_bytes(const Model& model) { return padded_bytes(model, alignment_of(model)); }

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
    all.least_bytes += chooser.least_bytes(i);
    all.most_bytes += chooser.most_bytes(i);
  }
  return all;
}

Error unmeasured(const Origin& origin, std::uint64_t least_bytes, std::uint64_t most_bytes) {
  return error_at(
      origin,
      fmt::format("{}; the tensors can take {} to {}", kUnmeasured, human_bytes(least_bytes), human_bytes(most_bytes)),
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
  const std::uint64_t least = chooser.least_bytes(0), most = chooser.most_bytes(0);
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
