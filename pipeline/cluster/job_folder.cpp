#include "pipeline/cluster/job_folder.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "pipeline/cluster/part_store.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {
namespace {

Error still_running(const ClusterArray& array) {
  return usage_error(
      "the job is running",
      fmt::format("`ggufmill status {0}` shows its progress, `ggufmill cancel {0}` cancels it", array.folder));
}

// Waits up to 60 seconds for Slurm to end the canceled jobs.
Status wait_for_end(const ClusterArray& array) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    BOOST_OUTCOME_TRY(const SlurmView view, look_at_slurm(array));
    if (!view.is_active()) return ok();
    if (std::chrono::steady_clock::now() > end)
      return Error{ExitCode::kTransient, "", "Slurm has not stopped the job yet", "", "try again, or check `squeue`"};
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

// Returns the total duration of the attempts that finished the parts.
double seconds_of_parts(const ClusterJob& job) {
  double seconds = 0;
  for (std::size_t part = 0; part < job.parts(); ++part)
    if (const auto marker = read_done(job, part)) seconds += marker->seconds;
  return seconds;
}

}  // namespace

Result<OpenedArray> open_array(ClusterArray array, const std::string& isa) {
  const ClusterJob& job = array.jobs.front();
  std::error_code error;
  if (!fs::equivalent(fs::current_path(), job.working_folder, error))
    return Error{ExitCode::kUsage, array.folder,
                 fmt::format("the job was submitted from {}, where its relative paths start", job.working_folder), "",
                 "make that folder the working folder of the process"};
  BOOST_OUTCOME_TRY(Context context, Context::create({job.kernel_directories, isa.empty() ? job.isa : isa}));
  return OpenedArray{std::move(context), std::move(array)};
}

Result<OpenedPlans> open_plans(ClusterArray array) {
  BOOST_OUTCOME_TRY(OpenedArray opened, open_array(std::move(array)));
  PlannedArray planned{std::move(opened.array), {}};
  for (const ClusterJob& job : planned.array.jobs) {
    BOOST_OUTCOME_TRY(Plan plan, load_plan(job, opened.context.kernels().types()));
    planned.plans.push_back(std::move(plan));
  }
  return OpenedPlans{std::move(opened.context), std::move(planned)};
}

std::vector<std::size_t> all_parts(const ClusterArray& array) {
  std::vector<std::size_t> parts(array.parts());
  std::iota(parts.begin(), parts.end(), std::size_t{0});
  return parts;
}

Result<PlannedArray> plan_single(const Context& context, const Plan& plan, const SubmitOptions& options) {
  Diagnostics errors;
  for (const Error& error : context.check(plan, options.overwrite)) errors.add(error);
  if (!errors.empty()) return errors.together();
  BOOST_OUTCOME_TRY(ClusterJob made, make_job(plan, options));
  PlannedArray planned{array_of(std::move(made)), {}};
  planned.plans.push_back(plan);
  return planned;
}

Result<std::optional<Submission>> start_parts(const ClusterArray& array, const std::vector<std::size_t>& parts,
                                              const std::string& program) {
  if (array.jobs.front().options.engine == ClusterOptions::Engine::kNone) return std::optional<Submission>();
  auto submitted = submit_to_slurm(array, parts, program);
  if (submitted) return std::optional(std::move(submitted).value());
  Error error = submitted.error();
  if (!error.detail.empty() && !error.detail.ends_with('\n')) error.detail += '\n';
  error.detail += fmt::format("the job is in {}, and none of it is queued", array.folder);
  if (!error.help.empty()) error.help += "; ";
  error.help += fmt::format("`ggufmill resume {}` submits it again", array.folder);
  return error;
}

Result<PartOutcome> run_part(const OpenedArray& opened, std::size_t part, std::optional<unsigned> threads,
                             PartOptions options,
                             const std::function<void(std::uint64_t done, std::uint64_t total)>& progress) {
  if (part >= opened.array.parts())
    return usage_error(fmt::format("part {} does not exist", part),
                       fmt::format("parts are numbered from 0 to {}", opened.array.parts() - 1));
  const auto [number, own] = opened.array.place_of(part);
  const ClusterJob& job = opened.array.jobs[number];
  BOOST_OUTCOME_TRY(Plan plan, load_plan(job, opened.context.kernels().types()));
  if (threads) plan.limits.threads = *threads;
  BOOST_OUTCOME_TRY(take_limits(plan.limits, [](const char* name) { return std::getenv(name); }));
  options.part = own;
  std::uint64_t total = 0;
  for (std::size_t i = job.range(own).first; i < job.range(own).last; ++i)
    total += plan.units[i].rows * plan.steps[plan.units[i].step].expression->row_bytes();
  if (progress) options.progress = [&](const Progress& now) { progress(now.bytes_read, total); };
  return run_part(opened.context, job, plan, options);
}

SealedArray seal_array(const OpenedPlans& opened, const SealOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const PlannedArray& planned = opened.planned;
  SealedArray sealed;
  if (!planned.array.is_matrix) {
    sealed.outcomes.push_back(seal(opened.context, planned.array.jobs.front(), planned.plans.front(), options));
    return sealed;
  }
  sealed.outcomes = seal_all(opened.context, planned, options);
  BatchReport& report = sealed.report;
  report.cells = planned.array.skipped;
  for (std::size_t i = 0; i < sealed.outcomes.size(); ++i) {
    const ClusterJob& job = planned.array.jobs[i];
    for (BatchCell& cell : cells_of(planned.plans[i], job.source)) {
      cell.state = sealed.outcomes[i] ? CellState::kWritten : CellState::kFailed;
      if (!sealed.outcomes[i]) cell.error = sealed.outcomes[i].error();
      cell.seconds = seconds_of_parts(job);
      report.cells.push_back(std::move(cell));
    }
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  BatchFiles files;
  for (const Plan& plan : planned.plans) files.add(plan);
  if (const Status written = write_batch_report(report, planned.array.report, files); !written)
    report.unreported = written.error();
  return sealed;
}

Result<Resumed> resume_array(const PlannedArray& planned, const std::string& program) {
  Resumed resumed;
  JobStatus status = JobWatch(planned).look(true);
  resumed.warnings = std::move(status.warnings);
  resumed.was_sealed = status.state == JobStatus::State::kSealed;
  if (resumed.was_sealed) return resumed;
  if (status.state == JobStatus::State::kRunning) return still_running(planned.array);
  BOOST_OUTCOME_TRY(resumed.parts, prepare_resume(planned));
  BOOST_OUTCOME_TRY(resumed.submitted, start_parts(planned.array, resumed.parts, program));
  return resumed;
}

Result<Canceled> cancel_array(const PlannedArray& planned, bool discard) {
  const ClusterArray& array = planned.array;
  std::vector<std::size_t> unsealed;  // indices of the jobs that are not sealed
  for (std::size_t i = 0; i < array.jobs.size(); ++i)
    if (!is_sealed(array.jobs[i], planned.plans[i])) unsealed.push_back(i);
  const Canceled canceled{unsealed.empty()};
  if (array.jobs.front().options.engine == ClusterOptions::Engine::kSlurm && !canceled.was_sealed) {
    BOOST_OUTCOME_TRY(cancel_in_slurm(array));
    BOOST_OUTCOME_TRY(wait_for_end(array));
  } else if (!canceled.was_sealed && JobWatch(planned).look(true).state == JobStatus::State::kRunning) {
    return usage_error("parts that ggufmill did not start are running", "stop them where they were started");
  }
  if (!discard) return canceled;
  for (const std::size_t i : unsealed) {
    BOOST_OUTCOME_TRY(remove_outputs(array.jobs[i], planned.plans[i]));
  }
  BOOST_OUTCOME_TRY(remove_array(array));
  return canceled;
}

}  // namespace ggufmill
