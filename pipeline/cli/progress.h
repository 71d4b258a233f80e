#pragma once
// Progress on stderr. On a terminal: lines that are redrawn in place and fit the terminal's width and height.
// Elsewhere: one plain line for the entire run every minute. With `--log json`: one object every few seconds.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/cli/messages.h"
#include "pipeline/graph/engine.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// Returns "#####.....  50%  1.00 GiB of 2.00 GiB  120 MB/s  9 s left" for `done` of `total` bytes after `seconds`. Of
// these, `before` bytes were done before the measured time started.
std::string progress_text(std::uint64_t done, std::uint64_t total, double seconds, std::uint64_t before = 0);

// One item in the progress display.
struct ProgressItem {
  std::string name;  // raw; printable() is applied when it is shown
  std::uint64_t done = 0, total = 0, before = 0;
};

// Returns lines for a terminal of `columns` columns and `rows` rows: one per item, none wider than the terminal (bars
// are shortened, numbers omitted, names cut in the middle), and at most rows - 1 of them. If there are more items, the
// last line shows the sum of the remaining ones.
std::vector<std::string> progress_lines(const std::vector<ProgressItem>& items, double seconds, std::size_t columns,
                                        std::size_t rows);

// Returns a line for a log: one for all items together, without a bar.
std::string progress_log_line(const std::vector<ProgressItem>& items, double seconds);

// Returns a line about a program that runs on the model `name`, at most `width` columns wide if `width` is not 0: the
// name is cut in the middle. A `total` of 0 is unknown.
std::string chunks_line(std::string_view step, const std::string& name, std::uint64_t done, std::uint64_t total,
                        std::size_t width);

// Returns the interval between progress reports.
std::chrono::milliseconds progress_pace(bool on_terminal, LogFormat format);

// Shows progress. Not thread-safe: engines report from one thread at a time.
class ProgressMeter {
 public:
  explicit ProgressMeter(bool quiet);
  // Shows the progress of a run, with one line per output file.
  void show(const Plan& plan, const Progress& now);
  // Shows the progress of the work described by `name`: `done` of `total` bytes.
  void show(const std::string& name, std::uint64_t done, std::uint64_t total);
  // Shows the progress of a step whose program runs on the model at a path: `done` of `total` chunks of a text; a total
  // of 0 is unknown.
  void show_chunks(std::string_view step, const std::string& model, std::uint64_t done, std::uint64_t total);
  void finish();  // ends the lines on a terminal

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due();
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void draw(const std::vector<ProgressItem>& items);
  void print(const std::vector<std::string>& lines);

  const bool quiet_;
  const bool terminal_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
  std::size_t lines_ = 0;  // number of lines on the terminal now
};

}  // namespace ggufmill
