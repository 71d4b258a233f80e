#include "pipeline/api/operations/batches.h"

#include <fmt/format.h>

#include "pipeline/core/text.h"
#include "pipeline/io/remote/address.h"

namespace ggufmill {

void note_cell(const BatchCell& cell, const Call& call) {
  const std::string path = remote::without_secrets(cell.output.empty() ? cell.source : cell.output);
  if (cell.state == CellState::kFailed)
    call.note({fmt::format("{}  failed", path)});
  else
    call.note({fmt::format("{}  {}, {}", path, name_of(cell.state), human_bytes(cell.bytes))});
}

std::optional<Error> failure_of(const std::vector<BatchCell>& cells) {
  BatchReport report;
  report.cells = cells;
  return failure_of(report);
}

std::optional<Error> failure_of(const BatchReport& report) {
  Diagnostics errors;
  for (const Error& error : failures_of(report.cells)) errors.add(error);
  if (report.unreported) errors.add(*report.unreported);
  if (errors.empty()) return {};
  return errors.together();
}

Message counts_of(const BatchReport& report) {
  return {fmt::format("{}: {} written, {} unchanged, {} failed, {} not run, in {:.1f} s",
                      counted(report.cells.size(), "output"), report.count(CellState::kWritten),
                      report.count(CellState::kUnchanged), report.count(CellState::kFailed),
                      report.count(CellState::kNotRun), report.seconds)};
}

}  // namespace ggufmill
