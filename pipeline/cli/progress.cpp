#include "pipeline/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <span>

#include "pipeline/api/table.h"
#include "pipeline/cli/messages.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/terminal.h"

namespace ggufmill {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBarCells = 24;
constexpr std::size_t kShortBar = 8;    // a shorter bar is useless
constexpr std::size_t kShortName = 20;  // minimum shown of a longer name; numbers and bar give way to it
constexpr auto kTerminalPace = 100ms;
constexpr auto kJsonPace = 5s;
constexpr auto kLogPace = 60s;

std::string time_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
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

// The numbers in a progress line.
struct Figures {
  std::string share, amount, rate, left;

  // Joins the numbers that are present, in display order.
  std::string joined() const {
    std::string all = share;
    for (const std::string* each : {&amount, &rate, &left})
      if (!each->empty()) all += "  " + *each;
    return all;
  }
  // Removes the least important number; returns false if only the share is left.
  bool shorten() {
    for (std::string* each : {&rate, &left, &amount})
      if (!each->empty()) return each->clear(), true;
    return false;
  }
};

Figures statistics_of(std::uint64_t done, std::uint64_t total, double seconds, std::uint64_t before) {
  const double share = total ? static_cast<double>(done) / static_cast<double>(total) : 1;
  const double rate = seconds > 0 && done > before ? static_cast<double>(done - before) / seconds : 0;
  Figures statistics{fmt::format("{:3.0f}%", 100 * share),
                     fmt::format("{} of {}", human_bytes(done), human_bytes(total)),
                     fmt::format("{:.0f} MB/s", rate / 1e6),
                     {}};
  if (rate > 0 && done < total) statistics.left = time_text(static_cast<double>(total - done) / rate) + " left";
  return statistics;
}

std::string bar(std::uint64_t done, std::uint64_t total, std::size_t cells) {
  const double share = total ? static_cast<double>(done) / static_cast<double>(total) : 1;
  const auto full = std::min(cells, static_cast<std::size_t>(share * static_cast<double>(cells)));
  return std::string(full, '#') + std::string(cells - full, '.');
}

// Returns a line of at most `width` columns. To fit, it shortens the bar, then drops numbers, then shortens the name,
// and finally drops the bar.
std::string fitted_line(const ProgressItem& item, double seconds, std::size_t width) {
  Figures statistics = statistics_of(item.done, item.total, seconds, item.before);
  const std::size_t name_width = display_width(printable(item.name));
  const std::size_t before = std::min(name_width, kShortName) + 2 + kShortBar + 1;
  while (statistics.joined().size() + before > width && statistics.shorten()) {
  }
  const std::string behind = statistics.joined();
  const std::size_t room = width - std::min(width, behind.size());
  const std::size_t for_bar = room - std::min(room, std::min(name_width, kShortName) + 3);
  const std::size_t beside_name = room - std::min(room, name_width + 3);
  const std::size_t cells = std::min(kBarCells, std::max(beside_name, std::min(for_bar, kShortBar)));
  if (cells < kShortBar) return fit_name(item.name, room - std::min<std::size_t>(room, 2)) + "  " + behind;
  return fit_name(item.name, room - cells - 3) + "  " + bar(item.done, item.total, cells) + " " + behind;
}

// Returns the sum of the items, named for example "16 more files".
ProgressItem sum_of(std::span<const ProgressItem> items, std::string_view name) {
  ProgressItem sum{fmt::format("{} {}", items.size(), name)};
  for (const ProgressItem& item : items) {
    sum.done += item.done;
    sum.total += item.total;
    sum.before += item.before;
  }
  return sum;
}

// A line of full width would wrap.
std::size_t line_width(std::size_t columns) { return std::max<std::size_t>(columns, 2) - 1; }

TerminalSize progress_size() {
  TerminalSize size = terminal_size(StandardStream::kErr);
  if (size.columns == 0) size.columns = 80;
  if (size.rows == 0) size.rows = 24;
  return size;
}

}  // namespace

std::string progress_text(std::uint64_t done, std::uint64_t total, double seconds, std::uint64_t before) {
  return bar(done, total, kBarCells) + " " + statistics_of(done, total, seconds, before).joined();
}

std::vector<std::string> progress_lines(const std::vector<ProgressItem>& items, double seconds, std::size_t columns,
                                        std::size_t rows) {
  const std::size_t width = line_width(columns);
  const std::size_t most = std::max<std::size_t>(rows, 2) - 1;
  std::vector<ProgressItem> shown(
      items.begin(), items.begin() + static_cast<std::ptrdiff_t>(items.size() > most ? most - 1 : items.size()));
  if (shown.size() < items.size())
    shown.push_back(sum_of(std::span(items).subspan(shown.size()), shown.empty() ? "files" : "more files"));
  std::vector<std::string> lines;
  for (const ProgressItem& item : shown) lines.push_back(fitted_line(item, seconds, width));
  return lines;
}

std::string chunks_line(std::string_view step, const std::string& name, std::uint64_t done, std::uint64_t total,
                        std::size_t width) {
  const std::string before = fmt::format("{} of ", step);
  const std::string behind = total == 0 ? "" : fmt::format("  {} of {} chunks", done, total);
  const std::size_t room = width == 0 ? std::string::npos : width - std::min(width, before.size() + behind.size());
  return before + fit_name(name, room) + behind;
}

std::string progress_log_line(const std::vector<ProgressItem>& items, double seconds) {
  const ProgressItem item = items.size() == 1 ? items[0] : sum_of(items, "files");
  return fmt::format("{}  {}", printable(item.name),
                     statistics_of(item.done, item.total, seconds, item.before).joined());
}

std::chrono::milliseconds progress_pace(bool on_terminal, LogFormat format) {
  if (format == LogFormat::kJson) return kJsonPace;
  return on_terminal ? kTerminalPace : std::chrono::milliseconds(kLogPace);
}

ProgressMeter::ProgressMeter(bool quiet) : quiet_(quiet), terminal_(is_terminal(StandardStream::kErr)) {
  if (!terminal_) next_ += progress_pace(terminal_, log_format());
}

bool ProgressMeter::is_due() {
  const auto time = Clock::now();
  if (quiet_ || time < next_) return false;
  next_ = time + progress_pace(terminal_, log_format());
  return true;
}

void ProgressMeter::show(const Plan& plan, const Progress& now) {
  if (!is_due()) return;
  if (log_format() == LogFormat::kJson) return print_object(to_json(plan, now, seconds()));
  std::vector<ProgressItem> items;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) {
      const std::uint64_t done = items.size() < now.file_bytes.size() ? now.file_bytes[items.size()] : 0;
      const std::uint64_t before =
          items.size() < now.file_bytes_before.size() ? now.file_bytes_before[items.size()] : 0;
      items.push_back({file.path, std::min(done, file.bytes), file.bytes, before});
    }
  draw(items);
}

void ProgressMeter::show(const std::string& name, std::uint64_t done, std::uint64_t total) {
  if (!is_due()) return;
  if (log_format() == LogFormat::kJson)
    return print_object({{"level", "progress"}, {"bytes_read", done}, {"bytes_total", total}, {"seconds", seconds()}});
  draw({{name, done, total, 0}});
}

void ProgressMeter::draw(const std::vector<ProgressItem>& items) {
  if (!terminal_) return print({progress_log_line(items, seconds())});
  const TerminalSize size = progress_size();
  print(progress_lines(items, seconds(), size.columns, size.rows));
}

void ProgressMeter::show_chunks(std::string_view step, const std::string& model, std::uint64_t done,
                                std::uint64_t total) {
  if (!is_due()) return;
  if (log_format() == LogFormat::kJson)
    return print_object({{"level", "progress"},
                         {"model", model},
                         {"chunks_done", done},
                         {"chunks_total", total},
                         {"seconds", seconds()}});
  const std::size_t width = terminal_ ? line_width(progress_size().columns) : 0;
  print({chunks_line(step, fs::path(model).filename().string(), done, total, width)});
}

// On a terminal, prints over the previous lines and erases any that remain.
void ProgressMeter::print(const std::vector<std::string>& lines) {
  std::string text;
  if (terminal_ && lines_ > 0) text = fmt::format("\r\x1b[{}A\x1b[J", lines_);
  if (terminal_) lines_ = lines.size();
  for (const std::string& line : lines) text += line + "\n";
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

void ProgressMeter::finish() { lines_ = 0; }

}  // namespace ggufmill
