#pragma once
// Seconds, and the median of several.

#include <algorithm>
#include <chrono>
#include <vector>

namespace ggufmill::bench {

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Effort {
  unsigned rounds = 5;    // of which the median counts
  double seconds = 0.05;  // of each round, at least
};

// Seconds of one `work`: the median of rounds, each of as many calls as its time needs.
template <class Work>
double time_of(const Effort& effort, const Work& work) {
  work();  // tables are built, pages touched
  const double once = std::max(seconds_of(work), 1e-9);
  const auto calls = static_cast<unsigned>(std::clamp(effort.seconds / once, 1.0, 1e6));
  std::vector<double> rounds;
  for (unsigned round = 0; round < std::max(effort.rounds, 1u); ++round) {
    const double total = seconds_of([&] {
      for (unsigned call = 0; call < calls; ++call) work();
    });
    rounds.push_back(total / calls);
  }
  return median(std::move(rounds));
}

}  // namespace ggufmill::bench
