// Operations of the C interface on jobs: run, status, discard, measure, curve, probe.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <optional>

#include "pipeline/api/curve_page.h"
#include "pipeline/api/describe.h"
#include "pipeline/api/measurement_file.h"
#include "pipeline/api/pages.h"
#include "pipeline/api/publish/publish.h"
#include "pipeline/c_api/c_options.h"
#include "pipeline/c_api/c_support.h"
#include "pipeline/io/output_store.h"
#include "pipeline/report/json_text.h"

namespace ggufmill::c {
namespace {

namespace json = boost::json;

// The job of a pipeline file without a matrix.
Result<Job> single_job(const ggufmill_job& job, const char* operation) {
  if (!job.batch.is_matrix) return job.batch.jobs.front().job;
  return usage_error(fmt::format("{} is not supported for a batch", operation), "use a pipeline file for each source");
}

struct RunChoices {
  RunOptions run;
  bool skip_unchanged = false, fail_fast = false;
};

Result<RunChoices> read_run_choices(const char* text, ggufmill_control* control) {
  RunChoices choices;
  std::size_t engine = 0, io = 0;
  Options options(text);
  options.read("overwrite", choices.run.overwrite);
  options.read("resume", choices.run.resume);
  options.read("skip_unchanged", choices.skip_unchanged);
  options.read("fail_fast", choices.fail_fast);
  options.read("engine", engine, Strings{"graph", "simple"});
  options.read("io_engine", io, Strings{"auto", "io_uring", "threads"});
  BOOST_OUTCOME_TRY(options.finish());
  choices.run.engine = engine == 0 ? EngineKind::kGraph : EngineKind::kSimple;
  choices.run.io = io == 0 ? IoKind::kAuto : io == 1 ? IoKind::kUring : IoKind::kThreads;
  choices.run.stop = stop_of(control);
  return choices;
}

MeasureOptions measure_options(ggufmill_control* control) {
  MeasureOptions options;
  options.run.stop = stop_of(control);
  options.progress = ProgressCaller(control).of_reading();
  return options;
}

std::string run_result(std::string_view report, const Strings& unchanged, const Strings& warnings) {
  return fmt::format("{{\"report\":{},\"unchanged\":{},\"warnings\":{}}}", report, to_json_text(json_texts(unchanged)),
                     to_json_text(json_texts(warnings)));
}

std::string text_of(const Report& report) {
  std::string text;
  report_json(report, [&](std::string_view piece) { text += piece; });
  return text;
}

Result<std::string> run_planned(const Context& context, const Plan& plan, RunChoices choices, const Strings& unchanged,
                                ggufmill_control* control) {
  PlanProgress progress(control);
  if (progress.is_wanted()) choices.run.progress = [&](const Progress& now) { progress.show(plan, now); };
  BOOST_OUTCOME_TRY(const RunReport done, context.run(plan, choices.run));
  Strings warnings = plan.warnings;
  warnings.insert(warnings.end(), done.warnings.begin(), done.warnings.end());
  return run_result(text_of(context.report_of(plan, done)), unchanged, warnings);
}

Result<std::string> run_single(const Context& context, Job job, const RunChoices& choices, ggufmill_control* control) {
  BOOST_OUTCOME_TRY(
      measure_if_needed(context, job, choices.run.overwrite || choices.skip_unchanged, measure_options(control)));
  BOOST_OUTCOME_TRY(Plan plan, context.plan(job));
  Strings unchanged;
  if (choices.skip_unchanged) {
    BOOST_OUTCOME_TRY(unchanged, drop_unchanged(context, plan, job, choices.run.stop));
    if (job.outputs.empty()) return run_result("null", unchanged, plan.warnings);
    if (!unchanged.empty()) {
      BOOST_OUTCOME_TRY(plan, context.plan(job));
    }
  }
  return run_planned(context, plan, choices, unchanged, control);
}

// Runs a batch. `failures` receives the errors of its outputs.
std::string run_all(const Context& context, const Batch& batch, const RunChoices& choices, ggufmill_control* control,
                    Diagnostics& failures) {
  PlanProgress progress(control);
  BatchOptions options;
  options.run = choices.run;
  options.fail_fast = choices.fail_fast;
  options.adjust = [&](const std::string&, Job& job) {
    return measure_if_needed(context, job, true, measure_options(control));
  };
  options.begun = [&](const std::string&, std::size_t, std::size_t) { progress.begin(); };
  if (progress.is_wanted()) options.progress = [&](const Plan& plan, const Progress& now) { progress.show(plan, now); };
  const BatchReport done = run_batch(context, batch, options);
  for (const Error& error : failures_of(done.cells)) failures.add(error);
  if (done.unreported) failures.add(*done.unreported);
  if (failures.empty() && control && control->stop && done.count(CellState::kNotRun) != 0) failures.add(interrupted());
  return run_result(batch_json(done), {}, done.warnings);
}

// Runs the jobs of a pipeline file with steps, up to the first that fails.
Result<std::string> run_steps(const Context& context, const Batch& batch, const RunChoices& choices,
                              ggufmill_control* control) {
  PlanProgress progress(control);
  PublishOptions options;
  options.batch.run = choices.run;
  options.batch.adjust = [&](const std::string&, Job& job) {
    return measure_if_needed(context, job, true, measure_options(control));
  };
  options.batch.begun = [&](const std::string&, std::size_t, std::size_t) { progress.begin(); };
  if (progress.is_wanted())
    options.batch.progress = [&](const Plan& plan, const Progress& now) { progress.show(plan, now); };
  BatchReport all;
  for (const BatchJob& each : batch.jobs) {
    BOOST_OUTCOME_TRY(const PublishReport done, publish(context, each, options));
    all.cells.insert(all.cells.end(), done.cells.begin(), done.cells.end());
    all.warnings.insert(all.warnings.end(), done.warnings.begin(), done.warnings.end());
  }
  return run_result(batch_json(all), {}, all.warnings);
}

// Calls `work` for the plan of each job of a pipeline file.
Status for_each_plan(const ggufmill_job& job, const std::function<Status(const BatchJob&, const Plan&)>& work) {
  for (const BatchJob& each : job.batch.jobs) {
    BOOST_OUTCOME_TRY(const Plan plan, job.context->plan(with_known_importance(*job.context, each.job)));
    BOOST_OUTCOME_TRY(work(each, plan));
  }
  return ok();
}

Result<std::string> status_of(const ggufmill_job& job) {
  json::array sources;
  BOOST_OUTCOME_TRY(for_each_plan(job, [&](const BatchJob& each, const Plan& plan) -> Status {
    json::object status = describe_status(*job.context, plan, has_steps(each.job) ? &each : nullptr);
    if (job.batch.is_matrix) status["source"] = each.source;
    sources.push_back(std::move(status));
    return ok();
  }));
  return to_json_text(job.batch.is_matrix ? json::object{{"sources", std::move(sources)}}
                                          : sources.front().as_object());
}

struct MeasureChoices {
  std::string output, html;
  bool overwrite = false, resume = true;
  unsigned part = 0, parts = 0;  // parts: 0 if it is not divided
};

Result<MeasureChoices> read_measure_choices(const char* text) {
  MeasureChoices choices;
  Options options(text);
  options.read("output", choices.output);
  options.read("html", choices.html);
  options.read("overwrite", choices.overwrite);
  options.read("resume", choices.resume);
  options.read("part", choices.part);
  options.read("parts", choices.parts, ClusterOptions::kMaxParts);
  BOOST_OUTCOME_TRY(options.finish());
  if (choices.parts == 0 && choices.part != 0) return usage_error("'part' needs 'parts'", "set both, or neither");
  if (choices.parts == 0) return choices;
  if (choices.part >= choices.parts)
    return usage_error(fmt::format("part {} of {} does not exist", choices.part, choices.parts),
                       "parts are numbered from 0");
  if (!choices.output.empty() || !choices.html.empty())
    return usage_error("a part has no output and no page",
                       "its results are kept in the cache: measure without 'parts' once all parts are done");
  return choices;
}

Result<Measurement> measure(const Context& context, const Job& job, const MeasureChoices& choices,
                            ggufmill_control* control) {
  MeasuringOptions options;
  options.output = choices.output;
  options.overwrite = choices.overwrite;
  options.starts_over = !choices.resume;
  if (choices.parts != 0) options.part = MeasuredPart{choices.part, choices.parts};
  options.stop = stop_of(control);
  options.progress = ProgressCaller(control).of_reading();
  return measure_to(context, without_measurements(job), options);
}

Result<std::string> measure_job(const Context& context, const Job& job, const char* text, ggufmill_control* control) {
  BOOST_OUTCOME_TRY(const MeasureChoices choices, read_measure_choices(text));
  if (!choices.html.empty()) {
    BOOST_OUTCOME_TRY(check_measurement_page(context, job, choices.output, choices.html, choices.overwrite));
  }
  BOOST_OUTCOME_TRY(const Measurement measured, measure(context, job, choices, control));
  if (!choices.html.empty()) {
    BOOST_OUTCOME_TRY(write_measurement_page(measured, choices.html, choices.overwrite));
  }
  return write_measurement(measured);
}

Result<std::string> curve_of_job(const ggufmill_job& job, const char* text, ggufmill_control* control) {
  BOOST_OUTCOME_TRY(Job single, single_job(job, "a curve"));
  std::uint64_t output = 0, points = 25;
  std::string page;
  bool overwrite = false, measures = false;
  Options options(text);
  options.read("output", output);
  options.read("points", points, 10'000);
  options.read("measure", measures);
  options.read("html", page);
  options.read("overwrite", overwrite);
  BOOST_OUTCOME_TRY(options.finish());
  if (output >= single.outputs.size())
    return usage_error(fmt::format("output {} does not exist", output),
                       fmt::format("the job has {}, numbered from 0", single.outputs.size()));
  if (measures) {
    BOOST_OUTCOME_TRY(measure_if_needed(*job.context, single, true, measure_options(control)));
  }
  BOOST_OUTCOME_TRY(const Curve curve, job.context->curve(single, output, points));
  if (!page.empty()) {
    BOOST_OUTCOME_TRY(Strings read, job.context->inputs(single));
    const std::string title = fmt::format("{}, output {}", single.file, output);
    BOOST_OUTCOME_TRY(write_page(*job.context, page, curve_html({{title, curve}}), std::move(read), overwrite));
  }
  return to_json_text(describe_curve(curve));
}

Status probe_job(const Context& context, const Job& job, const char* text, ggufmill_control* control) {
  ProbeOptions it;
  Options options(text);
  options.read("perplexity", it.perplexity);
  options.read("text", it.text);
  options.read("output", it.output);
  options.read("type", it.type);
  options.read("chunks", it.chunks);
  options.read("context", it.context);
  options.read("threads", it.threads, Limits::kMaxThreads);
  BOOST_OUTCOME_TRY(options.finish());
  for (const auto& [name, value] :
       {std::pair("perplexity", &it.perplexity), {"text", &it.text}, {"output", &it.output}})
    if (value->empty()) return usage_error(fmt::format("the option '{}' is missing", name));
  it.stop = stop_of(control);
  BOOST_OUTCOME_TRY(probe(context, job, it));
  return ok();
}

// Runs a job and stores its report, also if some of its jobs failed.
Status run_job(const ggufmill_job* job, const RunChoices& choices, ggufmill_control* control, char** json) {
  if (has_steps(job->batch)) {
    BOOST_OUTCOME_TRY(const std::string report, run_steps(*job->context, job->batch, choices, control));
    if (json) *json = copy_of(report);
    return ok();
  }
  if (job->batch.is_matrix) {
    Diagnostics failures;
    const std::string report = run_all(*job->context, job->batch, choices, control, failures);
    if (json) *json = copy_of(report);
    if (!failures.empty()) return failures.together();
    return ok();
  }
  BOOST_OUTCOME_TRY(const std::string report, run_single(*job->context, job->batch.jobs.front().job, choices, control));
  if (json) *json = copy_of(report);
  return ok();
}

}  // namespace
}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_job_run(const ggufmill_job* job, const char* options, ggufmill_control* control, char** json,
                                 ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"job", job}}));
    BOOST_OUTCOME_TRY(const RunChoices choices, read_run_choices(options, control));
    return with_job(*job, [&] { return run_job(job, choices, control, json); });
  });
}

ggufmill_status ggufmill_plan_run(const ggufmill_plan* plan, const char* options, ggufmill_control* control,
                                  char** json, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"plan", plan}}));
    BOOST_OUTCOME_TRY(const RunChoices choices, read_run_choices(options, control));
    if (choices.skip_unchanged || choices.fail_fast)
      return usage_error("a plan is run as it is", "run its job with 'skip_unchanged' or 'fail_fast'");
    BOOST_OUTCOME_TRY(const std::string report, run_planned(*plan->context, plan->plan, choices, {}, control));
    if (json) *json = copy_of(report);
    return ok();
  });
}

ggufmill_status ggufmill_job_status(const ggufmill_job* job, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"job", job}, {"json", json}}));
    BOOST_OUTCOME_TRY(const std::string text, status_of(*job));
    *json = copy_of(text);
    return ok();
  });
}

ggufmill_status ggufmill_job_discard(const ggufmill_job* job, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"job", job}}));
    return for_each_plan(
        *job, [&](const BatchJob&, const Plan& plan) { return job->context->discard(job->context->leftovers(plan)); });
  });
}

ggufmill_status ggufmill_job_measure(const ggufmill_job* job, const char* options, ggufmill_control* control,
                                     char** json, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"job", job}}));
    BOOST_OUTCOME_TRY(const Job single, single_job(*job, "measuring"));
    BOOST_OUTCOME_TRY(const std::string measured, measure_job(*job->context, single, options, control));
    if (json) *json = copy_of(measured);
    return ok();
  });
}

ggufmill_status ggufmill_job_curve(const ggufmill_job* job, const char* options, ggufmill_control* control, char** json,
                                   ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"job", job}, {"json", json}}));
    BOOST_OUTCOME_TRY(const std::string curve, curve_of_job(*job, options, control));
    *json = copy_of(curve);
    return ok();
  });
}

ggufmill_status ggufmill_job_probe(const ggufmill_job* job, const char* options, ggufmill_control* control,
                                   ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"job", job}}));
    BOOST_OUTCOME_TRY(const Job single, single_job(*job, "probing"));
    return probe_job(*job->context, single, options, control);
  });
}
