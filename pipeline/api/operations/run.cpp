// `run`: executes a pipeline file.

#include <fmt/format.h>

#include "pipeline/api/operations/batches.h"
#include "pipeline/api/operations/jobs.h"
#include "pipeline/api/operations/measuring.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/plan/written.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

struct RunJobRequest : JobRequest, RunRequest {
  bool skip_unchanged = false, fail_fast = false;
  std::string identity{};
};

// The result of a run: one of the reports, unless nothing had to be written.
struct JobRun {
  std::optional<Report> report{};
  std::optional<BatchReport> batch{};  // of a batch, or of a job with steps
  bool has_steps = false;
  std::vector<std::string> unchanged{};
};
using Ran = Answer<JobRun>;

// Adds the report options of the request to those of the pipeline file.
Status request_report(const RunJobRequest& request, std::optional<ReportRequest>& report) {
  return add_report(request.report, request.errors, report);
}

Status discard_jobs(const Context& context, const RunJobRequest& request, const Call& call) {
  Diagnostics errors;
  const auto discard = [&](const PlannedJob& planned) -> std::vector<Error> {
    const Status done = discard_leftovers(context, planned.plan, call);
    return done ? std::vector<Error>() : std::vector<Error>{done.error()};
  };
  if (const auto done = for_each_plan(context, request, call, errors, discard); !done) return done.error();
  return errors.empty() ? ok() : Status(errors.together());
}

// The options of a batch. `request` and `call` must outlive them.
BatchOptions batch_options(const Context& context, const RunJobRequest& request, const Call& call) {
  BatchOptions options;
  options.run = engine_options(request, call);
  options.fail_fast = request.fail_fast;
  options.adjust = [&](const std::string&, Job& job) -> Status {
    change_limits(request, job);
    BOOST_OUTCOME_TRY(take_measurement(context, job, IfUnmeasured::kMeasure, call));
    return ok();
  };
  options.progress = call.run_progress;
  options.begun = [&](const std::string& source, std::size_t index, std::size_t count) {
    call.note({fmt::format("[{}/{}] {}", index + 1, count, remote::without_secrets(source))});
  };
  options.ended = [&](const BatchCell& cell) { note_cell(cell, call); };
  return options;
}

Result<Ran> run_batch_of(const Context& context, Batch batch, const RunJobRequest& request, const Call& call) {
  if (!request.profile.empty())
    return usage_error(option_reference("profile") + " is not supported for a batch",
                       "run one of its jobs individually");
  std::optional<ReportRequest> report = batch.report;
  BOOST_OUTCOME_TRY(request_report(request, report));
  batch.report = *report;
  Ran answer{};
  BatchReport& done = answer.value.batch.emplace(run_batch(context, batch, batch_options(context, request, call)));
  call.warn_all(done.warnings);
  answer.failure = failure_of(done);
  answer.is_partial = true;
  const std::atomic<bool>* const stop = call.stop();
  if (!answer.failure && stop && *stop && done.count(CellState::kNotRun) != 0) {
    answer.failure = interrupted();
    answer.failure->detail = "finished outputs are kept; the same command continues";
  }
  return answer;
}

Result<Ran> run_jobs_with_steps(const Context& context, const Batch& batch, const RunJobRequest& request,
                                const Call& call) {
  if (!request.profile.empty())
    return usage_error(option_reference("profile") + " is not supported for a job with steps",
                       "run its outputs with another file");
  StepOptions options;
  options.batch = batch_options(context, request, call);
  options.batch.begun = {};
  bool has_begun = false;
  options.begun = [&](const JobStep& step, std::size_t index, std::size_t count) {
    has_begun = true;
    call.note({fmt::format("[{}/{}] {} {}", index + 1, count, name_of(step.kind), step.text)});
  };
  if (call.chunk_progress)
    options.chunks = [&](const JobStep& step, const std::string& model, std::uint64_t done, std::uint64_t total) {
      call.chunk_progress(name_of(step.kind), model, done, total);
    };
  if (call.step_progress)
    options.sent = [&](const JobStep& step, std::uint64_t done, std::uint64_t total) {
      call.step_progress(std::string(name_of(step.kind)), done, total);
    };
  Ran answer{};
  answer.value.has_steps = true;
  BatchReport& all = answer.value.batch.emplace();
  for (BatchJob each : batch.jobs) {
    BOOST_OUTCOME_TRY(request_report(request, each.job.report));
    change_limits(request, each.job);
    has_begun = false;
    const auto done = run_steps(context, each, options);
    if (!done) {
      Diagnostics errors;
      for (const Error& error : of_source({done.error()}, batch.is_matrix ? each.source : "")) errors.add(error);
      return errors.together();
    }
    call.warn_all(done.value().warnings);
    for (const std::string& note : done.value().notes) call.note({note});
    if (!has_begun) call.note({"nothing to do: all steps are done"});
    all.cells.insert(all.cells.end(), done.value().cells.begin(), done.value().cells.end());
  }
  return answer;
}

Result<Ran> run_single(const Context& context, Job job, const RunJobRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(request_report(request, job.report));
  if (!request.profile.empty()) job.trace = request.profile;
  change_limits(request, job);
  job = with_known_importance(context, job);
  const bool may_exist = request.overwrite || request.skip_unchanged;
  BOOST_OUTCOME_TRY(
      take_measurement(context, job, may_exist ? IfUnmeasured::kMeasure : IfUnmeasured::kMeasureNewFiles, call));
  BOOST_OUTCOME_TRY(PlannedJob planned, plan_job(context, job, request, call));
  if (!request.identity.empty() && identity_of(planned.plan) != request.identity)
    return Error{ExitCode::kBadInput, job.file,
                 "its plan is no longer the one with this identity: the pipeline file, a source, or the version of "
                 "ggufmill has changed",
                 "", "plan it again"};
  Ran answer{};
  if (request.skip_unchanged) {
    BOOST_OUTCOME_TRY(answer.value.unchanged, drop_unchanged(context, planned.plan, job, call.stop()));
    for (const std::string& path : answer.value.unchanged) call.note({path + "  unchanged"});
    if (job.outputs.empty()) return answer;
    if (!answer.value.unchanged.empty()) {
      BOOST_OUTCOME_TRY(planned.plan, context.plan(job));
    }
  }
  BOOST_OUTCOME_TRY(answer.value.report, run_plan(context, request, planned.plan, call));
  return answer;
}

Result<Ran> run_jobs(const Context& context, const RunJobRequest& request, const Call& call) {
  if (request.discard) {
    BOOST_OUTCOME_TRY(discard_jobs(context, request, call));
    return Ran{};
  }
  BOOST_OUTCOME_TRY(Batch batch, jobs_of(context, request, call));
  if (!request.identity.empty() && batch.is_matrix)
    return usage_error(option_reference("identity") + " is not supported for a batch",
                       "run each source with its own pipeline file");
  if (has_steps(batch) && request.identity.empty()) return run_jobs_with_steps(context, batch, request, call);
  if (batch.is_matrix) return run_batch_of(context, std::move(batch), request, call);
  return run_single(context, std::move(batch.jobs.front().job), request, call);
}

// Writes the report, with the outputs that are unchanged.
void write_run(const JobRun& run, const TextSink& sink) {
  std::string text;
  if (run.report) report_json(*run.report, [&](std::string_view piece) { text += piece; });
  if (run.batch) text = batch_json(*run.batch);
  text.erase(text.find_last_of('}') == text.npos ? 0 : text.find_last_of('}'));
  if (text.empty()) text = "{";
  sink(text + (text.size() > 1 ? "," : "") + "\"unchanged\":" + to_json_text(boost::json::value_from(run.unchanged)) +
       "}");
}

void print_run_of_job(const JobRun& run, TextOutput& to) {
  if (run.batch && !run.has_steps) to.notes.push_back(counts_of(*run.batch));
}

}  // namespace

OperationSpec run_operation() {
  using Options = std::vector<Option<RunJobRequest>>;
  using Request = RunJobRequest;
  return operation(OperationOf<RunJobRequest, JobRun>{
      .name = "run",
      .group = OperationGroup::kConvert,
      .summary = "Run a pipeline file",
      .description =
          "Run a pipeline file: read the source once and write all outputs. For a batch (`matrix`), process the "
          "sources in order, skipping outputs that already exist with unchanged inputs and options. An output appears "
          "under its name only once it is complete; a run that was interrupted or killed continues where it was. For a "
          "job with steps (importance that is computed, `quality`, `card`, `upload`, `after`), run those that are not "
          "done.",
      .for_programs = "A run that is ended resumes with the same call. If outputs of a batch fail, the others are "
                      "written before the failure is reported. In Python, @job can also be a Plan, which is run as it "
                      "is.",
      .examples = "  ggufmill run job.yaml\n"
                  "  ggufmill run job.yaml --set outputs.0.gguf=/data/out.gguf --overwrite",
      .in_python = {.type = "Result",
                    .returns = "the report, a dictionary in the format of report files, with \"unchanged\" and "
                               "\"warnings\""},
      .options =
          Options() + pipeline_file_options() +
          Options{option("overwrite", &Request::overwrite, "replace existing outputs"),
                  option("skip_unchanged", &Request::skip_unchanged,
                         "skip outputs whose manifests show that this run would not change them"),
                  option("fail_fast", &Request::fail_fast, "for a batch: start no further outputs after one fails"),
                  option("identity", &Request::identity, text(),
                         "run only the plan with this identity, which the plan's JSON contains, without "
                         "other steps"),
                  threads_option(), io_option()} +
          engine_rows(),
      .result = {.write = write_run,
                 .doc = "the report, in the format of report files, or, for a batch or a job with steps, of batch "
                        "reports: {cells: [{source, output, recipe, state, bytes, error, ..}], ..}; with `unchanged`, "
                        "the outputs that were skipped"},
      .context = ContextUse::kCheckpoints,
      .progress = "",
      .run = run_jobs,
      .print = print_run_of_job});
}

}  // namespace ggufmill
