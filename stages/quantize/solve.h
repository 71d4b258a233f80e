#pragma once
// The exact solution of the multiple-choice knapsack problem: of each class one option, the least sum of losses within
// a limit on the sum of costs.
//
// Lagrangian bounds and a dynamic program over the options that they leave, after D. Pisinger, "A minimal algorithm for
// the multiple-choice knapsack problem" (European Journal of Operational Research 83, 1995), in whole numbers
// throughout: the same answer on every machine.

#include <cstdint>
#include <optional>
#include <vector>

namespace ggufmill {

struct ChoiceOption {
  std::uint64_t cost = 0, loss = 0;  // at most 2^60 each, and so the sums over all classes
};
using ChoiceClass = std::vector<ChoiceOption>;  // at least one

struct ChoiceSolution {
  std::vector<std::size_t> options;  // of each class
  std::uint64_t cost = 0, loss = 0;
  bool is_proven = true;  // no choice is better; false where the search was given up at kMostChoiceStates
};

// None where the cheapest options cost more than `limit`. Of choices that are equally good the one that costs least; of
// several of these always the same. Thread-safe.
std::optional<ChoiceSolution> solve_choice(const std::vector<ChoiceClass>& classes, std::uint64_t limit);

// States of the dynamic program held at once, 16 bytes each and 8 for the way back.
inline constexpr std::size_t kMostChoiceStates = 12'000'000;

}  // namespace ggufmill
