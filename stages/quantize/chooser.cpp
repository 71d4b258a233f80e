#include "stages/quantize/chooser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/core/text.h"
#include "stages/quantize/solve.h"
#include "stages/quantize/stream_facts.h"

namespace ggufmill {
namespace {

constexpr double kLossScale = 0x1p59;  // sum of the largest losses, scaled to integers

std::uint64_t alignment_of(const Model& model) { return model.notes.get(notes::kTensorAlignment); }

}  // namespace

Status Chooser::prepare(const std::vector<std::size_t>& open) {
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

std::uint64_t Chooser::min_bytes(std::size_t budget) const {
  return sum(budget, [](const Group& g) { return std::ranges::min(g.bytes); });
}

std::uint64_t Chooser::max_bytes(std::size_t budget) const {
  return sum(budget, [](const Group& g) { return std::ranges::max(g.bytes); });
}

double Chooser::min_loss(std::size_t budget) const {
  double loss = 0;
  for (const Group& group : groups_)
    if (group.budget == budget) loss += std::ranges::min(group.loss);
  return loss;
}

std::uint64_t Chooser::weights(std::size_t budget) const {
  std::uint64_t weights = 0;
  for (std::size_t i = 0; i < budget_of_.size(); ++i)
    if (budget_of_[i] == budget) weights += model_.tensors[i].shape().elements();
  return weights;
}

std::uint64_t Chooser::bytes_in(std::size_t budget, const Model& model) const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < budget_of_.size(); ++i)
    if (budget_of_[i] == budget) bytes += padded_bytes(model.tensors[i], *model.tensors[i].type, alignment_of(model));
  return bytes;
}

std::optional<Choice> Chooser::at_most(std::size_t budget, double loss) const {
  return solve(budget, static_cast<std::uint64_t>(std::min(loss * scale_, kLossScale)), true);
}

std::optional<double> Chooser::loss_of(const Model& model, std::optional<std::size_t> budget) const {
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

Result<int> Chooser::fitness(const MeasuredTensor& measured, const Tensor& tensor) const {
  BOOST_OUTCOME_TRY(const Tensor rows, sampled(tensor, options_.sample));
  if (measured.made_of == measured_identity(rows, options_.encoders)) return 2;
  return measured.made_of == measured_identity(tensor, options_.encoders) ? 1 : 0;
}

Result<Measurement> Chooser::own_measurement() const {
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

Result<const MeasuredTensor*> Chooser::measured(const Tensor& tensor) const {
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

Status Chooser::divide() {
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

Status Chooser::check_patterns(const std::vector<std::size_t>& open) const {
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

Status Chooser::group(const std::vector<std::size_t>& open) {
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
    if (!is_open[i]) fixed_bytes_[budget_of_[i]] += padded_bytes(model_.tensors[i], *model_.tensors[i].type, alignment);
  return ok();
}

Error Chooser::two_budgets(const Group& group) const {
  return error_at(options_.origin,
                  fmt::format("tensors {} and {} must have the same type, but belong to two budgets",
                              quoted_name(model_.tensors[group.members.front().tensor].name),
                              quoted_name(model_.tensors[group.members.back().tensor].name)),
                  "make all tensors of a group match the pattern of one budget, or split the group in `groups`");
}

Status Chooser::count(const std::vector<std::size_t>& open) {
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

Result<const TypeBound*> Chooser::forbids(const TypeInfo& type, const Tensor& tensor) const {
  for (const TypeBound& bound : options_.bounds) {
    BOOST_OUTCOME_TRY(const bool fits, bound.match.matches(tensor.name));
    if (!fits) continue;
    if ((bound.at_least && type.bits_per_weight() < bound.at_least->bits_per_weight()) ||
        (bound.at_most && type.bits_per_weight() > bound.at_most->bits_per_weight()))
      return &bound;
  }
  return static_cast<const TypeBound*>(nullptr);
}

bool Chooser::is_measured_as(const Member& member, const TypeInfo& type, const Tensor& tensor) {
  return member.measured->find(type.name) && tensor.shape().columns() % type.block_elements == 0;
}

Status Chooser::no_candidate(const Group& group) const {
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

Status Chooser::add_options(Group& group) {
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

Status Chooser::add_options(Group& group, const TypeInfo* least) {
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

void Chooser::scale() {
  double most = 0;
  for (const Group& group : groups_) most += std::ranges::max(group.loss);
  scale_ = most > 0 ? kLossScale / most : 0;
}

std::optional<Choice> Chooser::solve(std::size_t budget, std::uint64_t limit, bool limits_loss) const {
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

std::optional<BetterType> Chooser::next_better(const Group& group, std::size_t picked) {
  std::optional<BetterType> best;
  for (std::size_t i = 0; i < group.types.size(); ++i) {
    if (group.loss[i] >= group.loss[picked] || group.bytes[i] <= group.bytes[picked]) continue;
    const std::uint64_t more = group.bytes[i] - group.bytes[picked];
    if (!best || more < best->more_bytes) best = {group.types[i], more, group.loss[picked] - group.loss[i]};
  }
  return best;
}

}  // namespace ggufmill
