#include "pipeline/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/table.h"

namespace ggufmill {
namespace {

using namespace std::chrono_literals;

constexpr int kBarCells = 24;
constexpr auto kTerminalPace = 100ms;
constexpr auto kLogPace = 5s;

std::string time_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

void put_json(const boost::json::object& object) {
  std::fputs((boost::json::serialize(object) + "\n").c_str(), stderr);
}

boost::json::object to_json(const Plan& plan, const Progress& now, double seconds) {
  boost::json::object object{{"level", "progress"},
                             {"bytes_written", now.bytes_written},
                             {"bytes_total", plan.bytes_written()},
                             {"bytes_read", now.bytes_read},
                             {"seconds", seconds}};
  if (now.tensor) object["tensor"] = *now.tensor;
  return object;
}

}  // namespace

std::string progress_text(std::uint64_t done, std::uint64_t total, double seconds) {
  const double share = total ? static_cast<double>(done) / static_cast<double>(total) : 1;
  const int cells = static_cast<int>(share * kBarCells);
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string text =
      fmt::format("{}{} {:3.0f}%  {} of {}  {:.0f} MB/s", std::string(cells, '#'), std::string(kBarCells - cells, '.'),
                  100 * share, human_bytes(done), human_bytes(total), rate / 1e6);
  if (rate > 0 && done < total) text += "  " + time_text(static_cast<double>(total - done) / rate) + " left";
  return text;
}

ProgressMeter::ProgressMeter(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO)) {
  if (!terminal_) next_ += kLogPace;
}

bool ProgressMeter::is_due() {
  const auto time = Clock::now();
  if (quiet_ || time < next_) return false;
  const bool redraw = terminal_ && log_format() == LogFormat::kText;
  next_ = time + (redraw ? std::chrono::duration_cast<Clock::duration>(kTerminalPace)
                         : std::chrono::duration_cast<Clock::duration>(kLogPace));
  return true;
}

void ProgressMeter::show(const Plan& plan, const Progress& now) {
  if (!is_due()) return;
  if (log_format() == LogFormat::kJson) return put_json(to_json(plan, now, seconds()));
  begin();
  std::size_t index = 0;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) {
      const std::uint64_t done = index < now.file_bytes.size() ? now.file_bytes[index] : 0;
      add_line(file.path, std::min(done, file.bytes), file.bytes);
      ++index;
    }
  end();
}

void ProgressMeter::show(const std::string& name, std::uint64_t done, std::uint64_t total) {
  if (!is_due()) return;
  if (log_format() == LogFormat::kJson)
    return put_json({{"level", "progress"}, {"bytes_read", done}, {"bytes_total", total}, {"seconds", seconds()}});
  begin();
  add_line(name, done, total);
  end();
}

void ProgressMeter::begin() {
  text_ = terminal_ && lines_ > 0 ? fmt::format("\x1b[{}A", lines_) : "";
  lines_ = 0;
}

void ProgressMeter::add_line(const std::string& name, std::uint64_t done, std::uint64_t total) {
  text_ += (terminal_ ? "\x1b[2K" : "") + name + "  " + progress_text(done, total, seconds()) + "\n";
  ++lines_;
}

void ProgressMeter::end() { std::fputs(text_.c_str(), stderr); }

void ProgressMeter::finish() { lines_ = 0; }

}  // namespace ggufmill
