#include "pipeline/cli/running.h"

#include <fmt/format.h>

#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/api/reports.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/signals.h"
#include "pipeline/core/text.h"
#include "pipeline/graph/profile.h"
#include "pipeline/io/remote/address.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

Result<RunOptions> run_options(const po::variables_map& values) {
  RunOptions options;
  const auto engine = values["engine"].as<std::string>();
  const auto io = values["io-engine"].as<std::string>();
  if (engine != "graph" && engine != "simple")
    return usage_error(fmt::format("unknown engine '{}'", engine), "--engine must be graph or simple");
  if (io != "auto" && io != "io_uring" && io != "threads")
    return usage_error(fmt::format("unknown I/O engine '{}'", io), "--io-engine must be auto, io_uring, or threads");
  options.engine = engine == "simple" ? EngineKind::kSimple : EngineKind::kGraph;
  options.io = io == "auto" ? IoKind::kAuto : io == "io_uring" ? IoKind::kUring : IoKind::kThreads;
  return options;
}

int discard(const Planned& planned, bool quiet) {
  const Leftovers left = planned.context.leftovers(planned.plan);
  if (const Status removed = planned.context.discard(left); !removed) return fail(removed.error());
  for (const Leftover& file : left.files)
    if (file.is_in_use)
      print_warning(fmt::format("kept {}: a run is writing it now", file.path));
    else if (!quiet)
      print_note(fmt::format("removed {}  {}", file.path, human_bytes(file.bytes)));
  if (left.files.empty() && !quiet) print_note("there are no leftover files of earlier runs");
  return 0;
}

void print_notes(const std::vector<Message>& notes) {
  for (const Message& note : notes) print_note(note.text, note.table);
}

}  // namespace

void add_run_options(po::options_description& options) {
  auto add = options.add_options();
  add("engine", po::value<std::string>()->default_value("graph"), "graph, or simple (processes one slab at a time)");
  add("io-engine", po::value<std::string>()->default_value("auto"), "auto, io_uring, or threads");
  add("profile", po::value<std::string>(), "FILE.json: print where the time went and write a trace for Perfetto");
  add("no-resume", "start over, ignoring leftover files of earlier runs, and leave none if interrupted");
  add("discard", "remove the leftover files of interrupted runs and exit");
  add("quiet,q", "print no progress and no summary");
  add_report_options(options);
}

void print_tensors(const PlannedOutput& output) { print_notes(tensor_messages(output)); }

int execute(const Planned& planned, const po::variables_map& values, bool overwrite) {
  auto options = run_options(values);
  if (!options) return fail(options.error());
  const Plan& plan = planned.plan;
  const bool quiet = values.count("quiet") > 0;
  if (plan.outputs.empty()) return 0;  // all outputs are unchanged
  if (values.count("discard")) return discard(planned, quiet);
  if (!quiet) print_notes(foreign_notes(planned.context.leftovers(plan)));
  options.value().resume = values.count("no-resume") == 0;
  ProgressMeter meter(quiet);
  options.value().overwrite = overwrite;
  options.value().stop = catch_signals();
  options.value().progress = [&](const Progress& now) { meter.show(plan, now); };
  options.value().starts_over = print_warning;
  std::optional<Profile> profile;
  if (!plan.trace.empty()) options.value().profile = &profile.emplace();
  const auto report = planned.context.run(plan, options.value());
  meter.finish();
  if (!report) {
    const int code = fail(report.error());
    return signal_exit_code().value_or(code);
  }
  print_warnings(report.value().warnings);
  if (quiet) return 0;
  print_notes(run_notes(plan, report.value()));
  if (profile) print_notes(profile_notes(*profile, report.value()));
  if (!plan.trace.empty()) print_note("wrote " + plan.trace + "  trace; open it at https://ui.perfetto.dev");
  for (const std::string& path : {plan.report.json, plan.report.html})
    if (!path.empty()) print_note("wrote " + path + "  report");
  return 0;
}

namespace {

int discard_batch(const Loaded& loaded, const po::variables_map& values) {
  int code = 0;
  for (const BatchJob& each : loaded.batch.jobs) {
    const auto planned = plan_job(loaded.context, each.job, values, IfUnmeasured::kLeave, each.source);
    const int one = planned ? discard(planned.value(), values.count("quiet") > 0) : fail(planned.error());
    if (code == 0) code = one;
  }
  return code;
}

}  // namespace

void print_cell(const BatchCell& cell) {
  const std::string path = remote::without_secrets(cell.output.empty() ? cell.source : cell.output);
  if (cell.state == CellState::kFailed)
    print_note(fmt::format("{}  failed", path));
  else
    print_note(fmt::format("{}  {}, {}", path, name_of(cell.state), human_bytes(cell.bytes)));
}

int print_failures(const std::vector<BatchCell>& cells) {
  const std::vector<Error> failures = failures_of(cells);
  for (const Error& error : failures) print_error(error);
  return failures.empty() ? 0 : static_cast<int>(failures.front().code);
}

int finish_batch(const BatchReport& report, bool quiet) {
  int code = print_failures(report.cells);
  if (!quiet)
    print_note(fmt::format("{}: {} written, {} unchanged, {} failed, {} not run, in {:.1f} s",
                           counted(report.cells.size(), "output"), report.count(CellState::kWritten),
                           report.count(CellState::kUnchanged), report.count(CellState::kFailed),
                           report.count(CellState::kNotRun), report.seconds));
  if (report.unreported) {
    const int failed = fail(*report.unreported);
    if (code == 0) code = failed;
  }
  return code;
}

namespace {

// Options of a batch, whose callbacks refer to the arguments.
Result<BatchOptions> batch_options(const Loaded& loaded, const po::variables_map& values, bool overwrite,
                                   ProgressMeter& meter) {
  const bool quiet = values.count("quiet") > 0;
  BatchOptions options;
  BOOST_OUTCOME_TRY(options.run, run_options(values));
  options.run.overwrite = overwrite;
  options.run.resume = values.count("no-resume") == 0;
  options.run.stop = catch_signals();
  options.run.starts_over = print_warning;
  options.fail_fast = values.count("fail-fast") > 0;
  options.adjust = [&loaded, &values, quiet](const std::string&, Job& job) -> Status {
    BOOST_OUTCOME_TRY(read_job_options(values, job));
    BOOST_OUTCOME_TRY(take_measurement(loaded.context, job, IfUnmeasured::kMeasure, quiet));
    return ok();
  };
  options.progress = [&meter](const Plan& plan, const Progress& now) { meter.show(plan, now); };
  if (quiet) return options;
  options.begun = [](const std::string& source, std::size_t index, std::size_t count) {
    print_note(fmt::format("[{}/{}] {}", index + 1, count, remote::without_secrets(source)));
  };
  options.ended = [&meter](const BatchCell& cell) {
    meter.finish();
    print_cell(cell);
  };
  return options;
}

}  // namespace

int execute_batch(const Loaded& loaded, const po::variables_map& values, bool overwrite) {
  const bool quiet = values.count("quiet") > 0;
  if (values.count("discard")) return discard_batch(loaded, values);
  if (values.count("profile"))
    return fail(usage_error("--profile is not supported for a batch", "run one of its jobs individually"));
  Job first = loaded.batch.jobs.front().job;  // the options apply to all jobs
  Status usable = read_job_options(values, first);
  Batch batch = loaded.batch;
  std::optional<ReportRequest> report = batch.report;
  if (usable) usable = read_report_options(values, report);
  if (!usable) return fail(usable.error());
  batch.report = *report;
  ProgressMeter meter(quiet);
  const auto options = batch_options(loaded, values, overwrite, meter);
  if (!options) return fail(options.error());
  const BatchReport done = run_batch(loaded.context, batch, options.value());
  meter.finish();
  print_warnings(done.warnings);
  const int code = finish_batch(done, quiet);
  return signal_exit_code().value_or(code);
}

Status print_steps(const Context& context, const BatchJob& job) {
  const PublishOptions options;
  BOOST_OUTCOME_TRY(const std::vector<JobStep> steps, steps_of(context, job, options));
  std::vector<Row> rows;
  for (const JobStep& step : steps)
    rows.push_back(
        {std::to_string(rows.size() + 1), std::string(name_of(step.kind)), step.is_done ? "done" : "", step.text});
  std::fputs(render_table({{"", Align::kRight}, {"step"}, {""}, {""}}, rows).c_str(), stdout);
  return ok();
}

int execute_steps(const Loaded& loaded, const po::variables_map& values, bool overwrite) {
  const bool quiet = values.count("quiet") > 0;
  if (values.count("discard")) return discard_batch(loaded, values);
  if (values.count("profile"))
    return fail(usage_error("--profile is not supported for a job with steps", "run its outputs with another file"));
  ProgressMeter meter(quiet);
  const auto batch = batch_options(loaded, values, overwrite, meter);
  if (!batch) return fail(batch.error());
  PublishOptions options;
  options.batch = batch.value();
  options.batch.begun = {};
  bool has_begun = false;
  options.begun = [&](const JobStep& step, std::size_t index, std::size_t count) {
    meter.finish();
    has_begun = true;
    if (!quiet) print_note(fmt::format("[{}/{}] {} {}", index + 1, count, name_of(step.kind), step.text));
  };
  options.chunks = [&](const JobStep& step, const std::string& model, std::uint64_t done, std::uint64_t total) {
    meter.show_chunks(name_of(step.kind), model, done, total);
  };
  options.sent = [&](const JobStep& step, std::uint64_t done, std::uint64_t total) {
    meter.show(std::string(name_of(step.kind)), done, total);
  };
  for (BatchJob each : loaded.batch.jobs) {
    Status read = read_report_options(values, each.job.report);
    if (read) read = read_job_options(values, each.job);
    if (!read) return fail(read.error());
    const auto report = publish(loaded.context, each, options);
    meter.finish();
    if (!report) {
      const int code = fail(of_source({report.error()}, loaded.batch.is_matrix ? each.source : ""));
      return signal_exit_code().value_or(code);
    }
    print_warnings(report.value().warnings);
    if (!quiet && !has_begun) print_note("nothing to do: all steps are done");
    has_begun = false;
  }
  return 0;
}

}  // namespace ggufmill
