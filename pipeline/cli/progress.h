#pragma once
// Progress on stderr: on a terminal one line that is drawn again and again; else a plain line every few seconds; with
// `--log json` an object.

#include <chrono>
#include <cstdint>
#include <string>

#include "pipeline/graph/engine.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// "#####.....  50%  1.00 GiB of 2.00 GiB  120 MB/s  9 s left" for `done` of `total` bytes after `seconds`.
std::string progress_text(std::uint64_t done, std::uint64_t total, double seconds);

// Not thread-safe: the engine reports from one thread at a time.
class ProgressMeter {
 public:
  ProgressMeter(const Plan& plan, bool quiet);
  void show(const Progress& now);
  void finish();  // ends the lines on a terminal

 private:
  using Clock = std::chrono::steady_clock;

  void draw(const Progress& now, double seconds);

  const Plan& plan_;
  const bool quiet_;
  const bool terminal_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
  std::size_t lines_ = 0;  // on the terminal now
};

}  // namespace ggufmill
