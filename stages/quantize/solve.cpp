#include "stages/quantize/solve.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace ggufmill {
namespace {

using Wide = __int128;  // for products of two of the problem's numbers

// An undominated option: no other option of its class is at least as good in both cost and loss. `index` is its index
// in the class.
struct Option {
  std::uint64_t cost, loss;
  std::size_t index;
};

// Returns the undominated options, by increasing cost and decreasing loss.
std::vector<Option> undominated(const ChoiceClass& options) {
  std::vector<Option> all;
  for (std::size_t i = 0; i < options.size(); ++i) all.push_back({options[i].cost, options[i].loss, i});
  std::ranges::stable_sort(
      all, [](const Option& a, const Option& b) { return a.cost != b.cost ? a.cost < b.cost : a.loss < b.loss; });
  std::vector<Option> left;
  for (const Option& option : all)
    if (left.empty() || option.loss < left.back().loss) left.push_back(option);
  return left;
}

// A step from one corner of a class's lower convex hull to the next. The loss saved per byte decreases from step to
// step.
struct HullStep {
  std::uint64_t cost, loss;  // additional cost and saved loss
  std::size_t group, to;     // the class, and the option at the end of the step
};

std::vector<HullStep> hull_steps(const std::vector<Option>& options, std::size_t group) {
  std::vector<std::size_t> corners;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto is_above = [&] {  // true if the last corner is on or above the line from its predecessor to i
      const Option &a = options[corners[corners.size() - 2]], &b = options[corners.back()], &c = options[i];
      return Wide(a.loss - b.loss) * (c.cost - a.cost) <= Wide(a.loss - c.loss) * (b.cost - a.cost);
    };
    while (corners.size() > 1 && is_above()) corners.pop_back();
    corners.push_back(i);
  }
  std::vector<HullStep> steps;
  for (std::size_t i = 1; i < corners.size(); ++i) {
    const Option &a = options[corners[i - 1]], &b = options[corners[i]];
    steps.push_back({b.cost - a.cost, a.loss - b.loss, group, corners[i]});
  }
  return steps;
}

// Cost and loss of a partial choice, relative to the base options of its classes.
struct State {
  std::int64_t cost, loss;
};
// Origin of a state: the preceding state and the option taken.
struct Way {
  std::uint32_t from, option;
};

class Solver {
 public:
  Solver(const std::vector<ChoiceClass>& classes, std::uint64_t limit) {
    std::uint64_t most = 0;  // a larger limit has no effect
    for (const ChoiceClass& options : classes) {
      groups_.push_back(undominated(options));
      most += groups_.back().back().cost;
    }
    limit_ = std::min(limit, most);
  }

  std::optional<ChoiceSolution> solve() {
    std::uint64_t least = 0;
    for (const auto& options : groups_) least += options.front().cost;
    if (least > limit_) return {};
    relax();
    ChoiceSolution found = describe(greedy_);
    // Any better choice exceeds the bound by less than this.
    Wide gap = excess_of(found);
    for (Wide reach = std::max<Wide>(gap / 4096, 1);; reach = reach > gap / 8 ? gap : reach * 8) {
      reach = std::min(reach, gap);
      const Search search = search_within(reach);
      if (!search.is_whole) {
        found.is_proven = false;
        return found;
      }
      if (search.best && is_better(*search.best, found)) {
        found = *search.best;
        gap = excess_of(found);
      }
      if (reach >= gap) return found;
    }
  }

 private:
  struct Search {
    bool is_whole = true;
    std::optional<ChoiceSolution> best;
  };

  static bool is_better(const ChoiceSolution& a, const ChoiceSolution& b) {
    return a.loss != b.loss ? a.loss < b.loss : a.cost < b.cost;
  }

  ChoiceSolution describe(const std::vector<std::size_t>& picked) const {
    ChoiceSolution solution;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Option& option = groups_[g][picked[g]];
      solution.options.push_back(option.index);
      solution.cost += option.cost;
      solution.loss += option.loss;
    }
    return solution;
  }

  // Computes the best fractional solution: steps in order of loss saved per byte, the last one taken in part. Its price
  // per byte yields a lower bound for every choice. greedy_ takes the steps that fit, skips the one that does not, and
  // continues with steps of other classes that still fit.
  void relax() {
    std::vector<HullStep> steps;
    greedy_.assign(groups_.size(), 0);
    std::uint64_t room = limit_;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      room -= groups_[g].front().cost;
      const std::vector<HullStep> more = hull_steps(groups_[g], g);
      steps.insert(steps.end(), more.begin(), more.end());
    }
    std::ranges::stable_sort(
        steps, [](const HullStep& a, const HullStep& b) { return Wide(a.loss) * b.cost > Wide(b.loss) * a.cost; });
    bool is_broken = false;
    std::vector<bool> stopped(groups_.size());
    for (const HullStep& step : steps) {
      if (stopped[step.group]) continue;
      if (step.cost <= room) {
        room -= step.cost;
        greedy_[step.group] = step.to;
        continue;
      }
      if (!is_broken) price_loss_ = step.loss, price_cost_ = step.cost;
      is_broken = stopped[step.group] = true;
    }
    if (!is_broken) price_loss_ = 0, price_cost_ = 1;  // all classes have their best option
    base_.assign(groups_.size(), 0);
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (std::size_t i = 1; i < groups_[g].size(); ++i)
        if (priced(groups_[g][i]) < priced(groups_[g][base_[g]])) base_[g] = i;
  }

  // Combines loss and cost: q loss + p cost, where p / q is the price.
  Wide priced(const Option& option) const { return Wide(price_cost_) * option.loss + Wide(price_loss_) * option.cost; }
  Wide reduced(std::size_t g, const Option& option) const { return priced(option) - priced(groups_[g][base_[g]]); }

  // Returns the excess of a choice over the bound, in units of q loss.
  Wide excess_of(const ChoiceSolution& solution) const {
    Wide bound = -Wide(price_loss_) * limit_;
    for (std::size_t g = 0; g < groups_.size(); ++g) bound += priced(groups_[g][base_[g]]);
    return Wide(price_cost_) * solution.loss - bound;
  }

  // Searches all choices whose excess is at most `reach`. `is_whole` is false if the state limit stopped the search.
  Search search_within(Wide reach) {
    std::int64_t base_cost = 0;
    std::vector<std::size_t> open;  // classes with more than one option within reach
    std::vector<std::vector<std::size_t>> options(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      base_cost += static_cast<std::int64_t>(groups_[g][base_[g]].cost);
      for (std::size_t i = 0; i < groups_[g].size(); ++i)
        if (reduced(g, groups_[g][i]) <= reach) options[g].push_back(i);
      if (options[g].size() > 1) open.push_back(g);
    }
    // For each k, a lower bound of the cost change in classes from k on.
    std::vector<std::int64_t> cheapest_after(open.size() + 1, 0);
    for (std::size_t k = open.size(); k-- > 0;) {
      const std::size_t g = open[k];
      const auto cheapest = static_cast<std::int64_t>(groups_[g][options[g].front()].cost);
      cheapest_after[k] = cheapest_after[k + 1] + cheapest - static_cast<std::int64_t>(groups_[g][base_[g]].cost);
    }
    const auto room = static_cast<std::int64_t>(limit_) - base_cost;
    std::vector<State> states{{0, 0}};
    std::vector<std::vector<Way>> ways;
    std::size_t held = 1;
    for (std::size_t k = 0; k < open.size(); ++k) {
      auto next = extend(states, open[k], options[open[k]], room - cheapest_after[k + 1], reach);
      states = std::move(next.first);
      ways.push_back(std::move(next.second));
      held += states.size();
      if (states.empty()) return {};
      if (held > kMaxChoiceStates) return {false, {}};
    }
    // States are sorted by increasing cost and decreasing loss: the last one that fits is the best.
    std::size_t at = states.size();
    while (at > 0 && states[at - 1].cost > room) --at;
    if (at == 0) return {};
    std::vector<std::size_t> picked = base_;
    std::size_t state = at - 1;
    for (std::size_t k = open.size(); k-- > 0;) {
      picked[open[k]] = ways[k][state].option;
      state = ways[k][state].from;
    }
    return {true, describe(picked)};
  }

  // Combines each state with each option of a class. Drops results that are dominated, cost more than `room`, or exceed
  // the bound by more than `reach`. Returns them by increasing cost and decreasing loss.
  std::pair<std::vector<State>, std::vector<Way>> extend(const std::vector<State>& states, std::size_t g,
                                                         const std::vector<std::size_t>& options, std::int64_t room,
                                                         Wide reach) const {
    const Option& base = groups_[g][base_[g]];
    std::vector<std::size_t> heads(options.size(), 0);  // next state to combine with each option
    std::vector<State> next;
    std::vector<Way> ways;
    const auto moved = [&](std::size_t o) {
      const Option& option = groups_[g][options[o]];
      const State& state = states[heads[o]];
      return State{state.cost + static_cast<std::int64_t>(option.cost) - static_cast<std::int64_t>(base.cost),
                   state.loss + static_cast<std::int64_t>(option.loss) - static_cast<std::int64_t>(base.loss)};
    };
    for (;;) {
      std::size_t best = options.size();
      State least{};
      for (std::size_t o = 0; o < options.size(); ++o) {
        if (heads[o] == states.size()) continue;
        const State state = moved(o);
        if (best == options.size() || state.cost < least.cost || (state.cost == least.cost && state.loss < least.loss))
          best = o, least = state;
      }
      if (best == options.size() || least.cost > room) break;
      const std::size_t from = heads[best]++;
      if (!next.empty() && next.back().loss <= least.loss) continue;
      if (Wide(price_cost_) * least.loss + Wide(price_loss_) * least.cost > reach) continue;
      next.push_back(least);
      ways.push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(options[best])});
    }
    return {std::move(next), std::move(ways)};
  }

  std::uint64_t limit_ = 0;
  std::vector<std::vector<Option>> groups_;
  std::uint64_t price_loss_ = 0, price_cost_ = 1;  // price of a byte: price_loss_ / price_cost_
  std::vector<std::size_t> base_;                  // best option of each class at that price
  std::vector<std::size_t> greedy_;
};

}  // namespace

std::optional<ChoiceSolution> solve_choice(const std::vector<ChoiceClass>& classes, std::uint64_t limit) {
  return Solver(classes, limit).solve();
}

}  // namespace ggufmill
