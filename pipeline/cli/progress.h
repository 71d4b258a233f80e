#pragma once
// Progress on stderr: on a terminal lines that are drawn again and again, of its width and no more than it has; else
// one plain line for the run every minute; with `--log json` an object every few seconds.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/cli/messages.h"
#include "pipeline/graph/engine.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// "#####.....  50%  1.00 GiB of 2.00 GiB  120 MB/s  9 s left" for `done` of `total` bytes after `seconds`, `before` of
// which were done before that time began.
std::string progress_text(std::uint64_t done, std::uint64_t total, double seconds, std::uint64_t before = 0);

// Something that goes on.
struct ProgressItem {
  std::string name;  // as it is: it is shown printable()
  std::uint64_t done = 0, total = 0, before = 0;
};

// The same for a terminal of `columns` columns and `rows` rows: a line for each item, none wider than the terminal
// (bars are shortened, figures left out, names cut in the middle), and at most rows - 1 of them, the last being the
// sum of the items that are left.
std::vector<std::string> progress_lines(const std::vector<ProgressItem>& items, double seconds, std::size_t columns,
                                        std::size_t rows);

// The same for a log: one line for all items together, without a bar.
std::string progress_log_line(const std::vector<ProgressItem>& items, double seconds);

// Time between two reports of progress.
std::chrono::milliseconds progress_pace(bool on_terminal, LogFormat format);

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
  void draw(const std::vector<ProgressItem>& items);

  const bool quiet_;
  const bool terminal_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
  std::size_t lines_ = 0;  // on the terminal now
};

}  // namespace ggufmill
