#pragma once
// What is done over the time of a run.

#include <array>
#include <cstddef>

namespace ggufmill {

// Sums of overlapping spans of time, in equal parts of a run's time, whose length doubles as the run gets longer:
// within a part, a span counts as spread evenly. All times are seconds since the beginning of the run. Not thread-safe.
class Timeline {
 public:
  void add(double begin, double end);
  void add(const Timeline& other);
  // Returns the seconds of all spans within [begin, end): 2 s for two spans that fill one second.
  double between(double begin, double end) const;

 private:
  static constexpr std::size_t kParts = 512;

  void double_part();

  double part_ = 1.0 / 1024;  // seconds
  std::array<double, kParts> sums_{};
};

}  // namespace ggufmill
