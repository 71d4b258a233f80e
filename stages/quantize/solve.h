#pragma once
// Exact solution of the multiple-choice knapsack problem: choose one option from each class to minimize the sum of
// losses, with a limit on the sum of costs.
//
// Uses Lagrangian bounds and a dynamic program over the remaining options, after D. Pisinger, "A minimal algorithm for
// the multiple-choice knapsack problem" (European Journal of Operational Research 83, 1995). All arithmetic is on
// integers, so the result is the same on every machine.

#include <cstdint>
#include <optional>
#include <vector>

namespace ggufmill {

struct ChoiceOption {
  std::uint64_t cost = 0, loss = 0;  // at most 2^60 each; the same limit for the sums over all classes
};
using ChoiceClass = std::vector<ChoiceOption>;  // at least one

struct ChoiceSolution {
  std::vector<std::size_t> options;  // index of the chosen option of each class
  std::uint64_t cost = 0, loss = 0;
  bool is_proven = true;  // no choice is better; false if the search stopped at kMaxChoiceStates
};

// Returns the choice with the smallest loss and, among those, the smallest cost; remaining ties are resolved
// deterministically. Returns nullopt if the cheapest options together cost more than `limit`. Thread-safe.
std::optional<ChoiceSolution> solve_choice(const std::vector<ChoiceClass>& classes, std::uint64_t limit);

// Limit of the states that the dynamic program keeps in memory: 16 bytes each, plus 8 to trace the choice back.
inline constexpr std::size_t kMaxChoiceStates = 12'000'000;

}  // namespace ggufmill
