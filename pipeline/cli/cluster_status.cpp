#include "pipeline/cli/cluster_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <thread>

#include "pipeline/api/table.h"
#include "pipeline/cli/cluster_jobs.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cluster/status.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/terminal.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;
using State = PartStatus::State;

std::string_view word_of(State state) { return kPartStates[static_cast<std::size_t>(state)]; }

std::string counts_of(const ClusterArray& array, const JobStatus& status) {
  std::string text = fmt::format("{} of {} parts done", status.count(State::kDone), status.parts.size());
  for (const State state : {State::kRunning, State::kQueued, State::kFailed, State::kMissing})
    if (const std::size_t count = status.count(state)) text += fmt::format(", {} {}", count, word_of(state));
  text = fmt::format("{} ({:.0f} %)", text, 100 * status.part_done());
  if (array.is_matrix)
    text += fmt::format("; {} of {} sources sealed", std::ranges::count(status.sealed, true), array.jobs.size());
  return text;
}

std::string next_step(const ClusterArray& array, const JobStatus& status) {
  if (status.state == JobStatus::State::kSealed) {
    const auto failed = std::ranges::count(array.skipped, CellState::kFailed, &BatchCell::state);
    return failed == 0
               ? "the outputs are complete"
               : fmt::format("the outputs are complete, except {} that failed when the job was submitted", failed);
  }
  if (status.state == JobStatus::State::kRunning)
    return status.seal.empty() ? "" : fmt::format("seal: {}", status.seal);
  if (status.count(State::kDone) == status.parts.size())
    return fmt::format(
        "all parts are done, but the outputs are not sealed: `ggufmill resume {}` continues with the seal",
        array.folder);
  return fmt::format("the job is not running: `ggufmill resume {}` continues it", array.folder);
}

// Returns a table of the parts that are not done: failed and missing parts first, then running and queued ones.
std::string table_of(const ClusterArray& array, const JobStatus& status) {
  constexpr std::size_t kMax = 20;
  std::vector<Row> rows;
  std::size_t left = 0;
  for (const State state : {State::kFailed, State::kMissing, State::kRunning, State::kQueued})
    for (std::size_t i = 0; i < status.parts.size(); ++i) {
      const PartStatus& part = status.parts[i];
      if (part.state != state) continue;
      if (rows.size() == kMax) {
        ++left;
        continue;
      }
      rows.push_back({std::to_string(i), std::string(word_of(state)), fmt::format("{}/{}", part.units_done, part.units),
                      printable(part.host), printable(part.engine)});
      if (array.is_matrix) rows.back().push_back(printable(array.jobs[array.place_of(i).job].source));
    }
  if (rows.empty()) return "";
  std::vector<Column> columns{{"part", Align::kRight}, {"state"}, {"units", Align::kRight}, {"node"}, {"engine"}};
  if (array.is_matrix) columns.push_back(name_column("source"));
  std::string text = render_table(columns, rows);
  if (left != 0) text += fmt::format("and {} more parts\n", left);
  return text;
}

std::string errors_of(const JobStatus& status) {
  constexpr std::size_t kMax = 3;
  std::string text;
  std::size_t count = 0;
  for (std::size_t i = 0; i < status.parts.size(); ++i)
    if (status.parts[i].state == State::kFailed && ++count <= kMax)
      text += fmt::format("part {}: {}", i, printable(status.parts[i].error, "\n"));
  count = 0;
  for (std::size_t i = 0; i < status.parts.size(); ++i)
    if (!status.parts[i].lost.empty() && ++count <= kMax)
      text += fmt::format("part {} was done but must be done again: {}\n", i, printable(status.parts[i].lost));
  return text;
}

std::string status_text(const ClusterArray& array, const JobStatus& status) {
  std::string text = fmt::format("{}: {}\n", printable(array.folder), counts_of(array, status));
  text += table_of(array, status) + errors_of(status);
  if (const std::string next = next_step(array, status); !next.empty()) text += printable(next) + "\n";
  return text;
}

// Redraws the status in place on a terminal; elsewhere prints a line whenever the status changes.
class Screen {
 public:
  void show(const ClusterArray& array, const JobStatus& status) {
    std::string text = terminal_ || status.state != JobStatus::State::kRunning ? status_text(array, status)
                                                                               : counts_of(array, status) + "\n";
    if (text == last_) return;
    if (terminal_ && lines_ != 0) fmt::print("\x1b[{}F\x1b[J", lines_);
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    lines_ = std::count(text.begin(), text.end(), '\n');
    last_ = std::move(text);
  }

 private:
  const bool terminal_ = is_terminal(StandardStream::kOut);
  std::ptrdiff_t lines_ = 0;
  std::string last_;
};

}  // namespace

int cluster_status(const std::string& folder, bool json, bool watch) {
  const auto opened = enter_plans(folder);
  if (!opened) return fail(opened.error());
  const ClusterArray& array = opened.value().planned.array;
  JobWatch looking(opened.value().planned);
  JobStatus status = looking.look(true);
  const std::atomic<bool>* stop = watch ? catch_signals() : nullptr;
  Screen screen;
  const auto show = [&] {
    print_warnings(status.warnings);
    if (json)
      std::puts(to_json_text(describe_status(array, status)).c_str());
    else
      screen.show(array, status);
    std::fflush(stdout);
  };
  show();
  while (watch && status.state == JobStatus::State::kRunning && !*stop) {
    for (int i = 0; i < 20 && !*stop; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    status = looking.look(false);
    show();
  }
  return static_cast<int>(status.state);
}

}  // namespace ggufmill
