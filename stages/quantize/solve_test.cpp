#include "stages/quantize/solve.h"

#include <random>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

// Solves the problem by trying all choices.
std::optional<ChoiceSolution> brute_force(const std::vector<ChoiceClass>& classes, std::uint64_t limit) {
  std::optional<ChoiceSolution> best;
  std::vector<std::size_t> digits(classes.size(), 0);
  for (;;) {
    ChoiceSolution choice;
    choice.options = digits;
    for (std::size_t g = 0; g < classes.size(); ++g) {
      choice.cost += classes[g][digits[g]].cost;
      choice.loss += classes[g][digits[g]].loss;
    }
    const auto is_better = [&] {
      return !best || choice.loss < best->loss || (choice.loss == best->loss && choice.cost < best->cost);
    };
    if (choice.cost <= limit && is_better()) best = choice;
    std::size_t g = 0;
    while (g < classes.size() && ++digits[g] == classes[g].size()) digits[g++] = 0;
    if (g == classes.size()) return best;
  }
}

// Types of 1.6 to 8.5 bits. The loss decreases about fourfold with every bit and is scaled by the tensor's sensitivity.
std::vector<ChoiceClass> model_like(std::size_t tensors, std::size_t types, std::uint64_t weights,
                                    std::mt19937_64& random) {
  std::uniform_real_distribution<double> sensitivity(-5, 5), noise(0.8, 1.25);
  std::vector<ChoiceClass> classes;
  for (std::size_t t = 0; t < tensors; ++t) {
    ChoiceClass options;
    const double matters = std::exp(sensitivity(random));
    const std::uint64_t size = weights * (1 + random() % 8);
    for (std::size_t k = 0; k < types; ++k) {
      const double bits = 1.6 + 6.9 * static_cast<double>(k) / static_cast<double>(types - 1);
      const double loss = matters * std::exp2(-2 * bits) * noise(random) * 1e14;
      options.push_back({static_cast<std::uint64_t>(bits * 16) * size / 128, static_cast<std::uint64_t>(loss)});
    }
    classes.push_back(std::move(options));
  }
  return classes;
}

}  // namespace

TEST_CASE("the solver's choice is optimal for random tables and limits") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<ChoiceClass> classes;
    if (round % 2 == 0) {
      classes = model_like(6, 5, 1 << 20, random);
    } else {
      for (int t = 0; t < 6; ++t) {
        ChoiceClass options;
        for (int k = 0; k < 5; ++k) options.push_back({random() % 40, random() % 40});
        classes.push_back(options);
      }
    }
    std::uint64_t least = 0, most = 0;
    for (const ChoiceClass& options : classes) {
      least += std::ranges::min(options, {}, &ChoiceOption::cost).cost;
      most += std::ranges::max(options, {}, &ChoiceOption::cost).cost;
    }
    const std::uint64_t limit = least + random() % (most - least + 2) - (round % 7 == 0 ? 1 : 0);
    const auto found = solve_choice(classes, limit), right = brute_force(classes, limit);
    CAPTURE(round);
    REQUIRE(found.has_value() == right.has_value());
    if (!found) continue;
    CHECK(found->is_proven);
    CHECK(found->loss == right->loss);
    CHECK(found->cost == right->cost);
    std::uint64_t cost = 0, loss = 0;
    for (std::size_t g = 0; g < classes.size(); ++g) {
      cost += classes[g][found->options[g]].cost;
      loss += classes[g][found->options[g]].loss;
    }
    CHECK(cost == found->cost);
    CHECK(loss == found->loss);
  }
}

TEST_CASE("eight tensors and five types match brute force") {
  std::mt19937_64 random(2);
  const auto classes = model_like(8, 5, 1 << 22, random);
  for (const double bits : {2.0, 3.3, 4.5, 7.0}) {
    std::uint64_t weights = 0;
    for (const ChoiceClass& options : classes) weights += options.back().cost;
    const auto limit = static_cast<std::uint64_t>(static_cast<double>(weights) * bits / 8.5);
    const auto found = solve_choice(classes, limit), right = brute_force(classes, limit);
    REQUIRE(found);
    CHECK(found->loss == right->loss);
    CHECK(found->cost == right->cost);
  }
}

TEST_CASE("a choice for 2,000 tensors and 20 types is proven") {
  std::mt19937_64 random(3);
  const auto classes = model_like(2000, 20, 1 << 25, random);
  for (const std::uint64_t limit : {80'000'000'000u, 160'000'000'000u, 250'000'000'000u}) {
    const auto found = solve_choice(classes, limit);
    REQUIRE(found);
    CHECK(found->is_proven);
    CHECK(found->cost <= limit);
    CHECK(found->cost > limit - limit / 1000);
  }
}

TEST_CASE("equal tensors do no harm") {
  const std::vector<ChoiceClass> classes(300,
                                         ChoiceClass{{2000, 900}, {3000, 400}, {4000, 100}, {5000, 20}, {8000, 0}});
  const auto found = solve_choice(classes, 1'234'567);
  REQUIRE(found);
  CHECK(found->is_proven);
}

TEST_CASE("an impossible limit has no choice, and a loose one has the best choice") {
  const std::vector<ChoiceClass> classes{{{10, 5}, {20, 1}}, {{7, 3}, {9, 4}}};
  CHECK_FALSE(solve_choice(classes, 16));
  CHECK(solve_choice(classes, 17)->options == std::vector<std::size_t>{0, 0});
  CHECK(solve_choice(classes, 1000)->options == std::vector<std::size_t>{1, 0});
  CHECK(solve_choice(classes, ~std::uint64_t{0})->options == std::vector<std::size_t>{1, 0});
}
