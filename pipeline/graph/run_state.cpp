#include "pipeline/graph/run_state.h"

#include <new>

#include "pipeline/graph/run_files.h"

namespace ggufmill {
namespace {

constexpr std::chrono::milliseconds kReportInterval{50};

}  // namespace

Error unexpected(const std::exception& exception) {
  if (dynamic_cast<const std::bad_alloc*>(&exception))
    return {ExitCode::kTransient, "", "out of memory", "", "lower the memory limit, or run where more memory is free"};
  return {ExitCode::kInternal, "", exception.what(), "", "this is a defect of ggufmill: please report it"};
}

RunState::RunState(const Plan& plan, const RunOptions& options)
    : stop_(options.stop), report_(options.progress), reported_(Clock::now()), plan_(plan) {
  bytes_left_.reserve(plan.routes.size());
  for (const Route& route : plan.routes) bytes_left_.push_back(route.source.bytes);
  std::size_t files = 0;
  for (const PlannedOutput& output : plan.outputs) {
    first_file_.push_back(files);
    files += output.files.size();
  }
  file_bytes_.resize(files);
  progress_.file_bytes = file_bytes_;
}

void RunState::fail(std::uint64_t ordinal, std::uint64_t step, Error error) {
  const std::lock_guard lock(mutex_);
  if (std::pair(ordinal, step) >= failed_at_) return;
  failed_at_ = {ordinal, step};
  failed_ordinal_ = ordinal;
  error_ = std::move(error);
}

void RunState::finished(const Flight& flight) {
  if (spoiled(flight.ordinal)) return;
  for (const Leg& leg : flight.legs) finished(leg);
  report(false);
}

void RunState::finished(const Leg& leg) {
  progress_.bytes_read += leg.slab.source_bytes;
  const std::vector<Target>& targets = plan_.routes[leg.slab.route].targets;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    progress_.bytes_written += leg.target_bytes(i).size();
    file_bytes_[first_file_[targets[i].output] + targets[i].file] += leg.target_bytes(i).size();
  }
  bytes_left_[leg.slab.route] -= leg.slab.source_bytes;
  if (bytes_left_[leg.slab.route] == 0) progress_.tensor = &plan_.routes[leg.slab.route].name;
}

void RunState::report(bool at_once) {
  const Clock::time_point now = Clock::now();
  if (!report_ || (!at_once && now - reported_ < kReportInterval)) return;
  reported_ = now;
  report_(progress_);
}

Status RunState::status() {
  if (stopped()) return interrupted(0, 0);
  if (error_) return *error_;
  report(true);
  return ok();
}

}  // namespace ggufmill
