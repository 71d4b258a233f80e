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

// Not thread-safe: engines report from one thread at a time.
class ProgressMeter {
 public:
  explicit ProgressMeter(bool quiet);
  // Of a run: a line for each output file.
  void show(const Plan& plan, const Progress& now);
  // Of work on something that `name` says: `done` of `total` bytes.
  void show(const std::string& name, std::uint64_t done, std::uint64_t total);
  void finish();  // ends the lines on a terminal

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due();
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void begin();
  void add_line(const std::string& name, std::uint64_t done, std::uint64_t total);
  void end();

  const bool quiet_;
  const bool terminal_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
  std::string text_;
  std::size_t lines_ = 0;  // on the terminal now
};

}  // namespace ggufmill
