#pragma once
// Times work so that a busy machine disturbs the results little: measures the CPU time of this thread and alternates
// between contenders.

#include <functional>
#include <span>
#include <vector>

namespace ggufmill::bench {

// Returns the CPU time of this thread so far, in seconds. Time used by other threads and processes is not included.
double thread_seconds();

// Returns the median, or the upper of the two middle values. `values` must not be empty.
double median(std::vector<double> values);

struct Effort {
  unsigned rounds = 5;    // the median is used
  double seconds = 0.02;  // per contender and round, at least
};

// Returns the seconds of one call as result[contender][round]. After a warm-up of the same length, every contender runs
// once in each round. The order rotates from round to round, so that a slow phase of the machine affects all
// contenders.
std::vector<std::vector<double>> time_in_turn(std::span<const std::function<void()>> contenders, const Effort& effort);

// Returns the median over the rounds of base[round] / time[round]: the speedup over `base`.
double speed_ratio(const std::vector<double>& base, const std::vector<double>& time);

}  // namespace ggufmill::bench
