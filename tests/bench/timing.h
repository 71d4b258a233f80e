#pragma once
// Seconds of work, measured so that a busy machine disturbs little: CPU time of this thread, contenders in turn.

#include <functional>
#include <span>
#include <vector>

namespace ggufmill::bench {

// CPU time of this thread so far, in seconds: what others on the machine take does not count.
double thread_seconds();

// The upper one of two in the middle. values: at least one.
double median(std::vector<double> values);

struct Effort {
  unsigned rounds = 5;    // of which the median counts
  double seconds = 0.02;  // of each contender in each round, at least
};

// Seconds of one call by contender and round: result[contender][round]. After a warm-up of the same length all
// contenders run once in every round, in an order that turns, so that a slow phase of the machine hits all alike.
std::vector<std::vector<double>> time_in_turn(std::span<const std::function<void()>> contenders, const Effort& effort);

// The median over the rounds of base[round] / time[round]: how many times faster than `base`, both of a round.
double speed_ratio(const std::vector<double>& base, const std::vector<double>& time);

}  // namespace ggufmill::bench
