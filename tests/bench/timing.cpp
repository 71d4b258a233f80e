#include "tests/bench/timing.h"

#include <time.h>

#include <algorithm>

namespace ggufmill::bench {
namespace {

// Returns the seconds per call, averaged over `calls` calls.
double time_calls(const std::function<void()>& work, unsigned calls) {
  const double start = thread_seconds();
  for (unsigned call = 0; call < calls; ++call) work();
  return std::max(thread_seconds() - start, 1e-9) / calls;
}

// Runs `work` until the effort's time is over, so that tables are built, pages are touched and the clock rate is up.
// Returns the number of calls that fit in that time.
unsigned warm_up(const std::function<void()>& work, const Effort& effort) {
  unsigned calls = 1;
  double seconds = time_calls(work, 1);
  for (double spent = seconds; spent < effort.seconds; spent += seconds * calls) {
    calls = static_cast<unsigned>(std::clamp((effort.seconds - spent) / seconds, 1.0, 2.0 * calls));
    seconds = time_calls(work, calls);
  }
  return static_cast<unsigned>(std::clamp(effort.seconds / seconds + 0.5, 1.0, 1e6));
}

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<std::vector<double>> time_in_turn(std::span<const std::function<void()>> contenders, const Effort& effort) {
  std::vector<unsigned> calls;
  for (const auto& contender : contenders) calls.push_back(warm_up(contender, effort));
  std::vector<std::vector<double>> times(contenders.size());
  for (unsigned round = 0; round < std::max(effort.rounds, 1u); ++round) {
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      const std::size_t which = (turn + round) % contenders.size();
      times[which].push_back(time_calls(contenders[which], calls[which]));
    }
  }
  return times;
}

double speed_ratio(const std::vector<double>& base, const std::vector<double>& time) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < time.size(); ++round) ratios.push_back(base[round] / time[round]);
  return median(std::move(ratios));
}

}  // namespace ggufmill::bench
