// Operations of the C interface on jobs: run, status, discard, measure, curve, probe.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <optional>

#include "pipeline/api/describe.h"
#include "pipeline/api/measurement_file.h"
#include "pipeline/api/operations/given_options.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/api/publish/publish.h"
#include "pipeline/c_api/c_options.h"
#include "pipeline/c_api/c_support.h"
#include "pipeline/report/json_text.h"

namespace ggufmill::c {
namespace {

namespace json = boost::json;

// The job of a pipeline file without a matrix.
Result<Job> single_job(const ggufmill_job& job, const char* operation) {
  if (!job.batch.is_matrix) return job.batch.jobs.front().job;
  return usage_error(fmt::format("{} is not supported for a batch", operation), "use a pipeline file for each source");
}

// Returns the result of `run` in the former shape: {report, unchanged, warnings}, where `report` is null if nothing had
// to be written. The members of the report come before `unchanged`.
std::string run_result(const std::string& result) {
  const std::size_t end = result.rfind("\"unchanged\":");
  const std::string report = end <= 1 ? "null" : result.substr(0, end - 1) + "}";
  return fmt::format("{{\"report\":{},{}", report, result.substr(end));
}

Status run_job(const ggufmill_job& job, const char* options, ggufmill_control* control, char** into) {
  BOOST_OUTCOME_TRY(const CalledOperation called, call_on_job(job, "run", options, control));
  if (into && (!called.failure || job.batch.is_matrix)) *into = copy_of(run_result(called.json));
  return called.failure ? Status(*called.failure) : ok();
}

Result<std::string> run_plan_of(const ggufmill_plan& plan, const char* text, ggufmill_control* control) {
  std::vector<OperationOption> rows{Option<RunRequest>(option("overwrite", &RunRequest::overwrite, ""))};
  for (Option<RunRequest>& each : engine_rows())
    if (each.name() == "resume" || each.name() == "engine" || each.name() == "io_engine") rows.push_back(each);
  BOOST_OUTCOME_TRY(const json::object members, request_of(text ? text : ""));
  for (const char* const name : {"skip_unchanged", "fail_fast"})
    if (members.contains(name))
      return usage_error("a plan is run as it is", "run its job with 'skip_unchanged' or 'fail_fast'");
  GivenOptions given(OptionNames(Caller::kProgram, rows));
  BOOST_OUTCOME_TRY(add_members(members, rows, given));
  RunRequest request;
  BOOST_OUTCOME_TRY(given.read(rows, plan.context->kernels().types(), &request));
  Call call{stop_of(control)};
  PlanProgress progress(control);
  if (progress.is_wanted())
    call.run_progress = [&](const Plan& shown, const Progress& now) { progress.show(shown, now); };
  std::vector<std::string> warnings = plan.plan.warnings;
  call.warn = [&](const std::string& warning) { warnings.push_back(warning); };
  BOOST_OUTCOME_TRY(const Report report, run_plan(*plan.context, request, plan.plan, call));
  std::string written;
  report_json(report, [&](std::string_view piece) { written += piece; });
  return fmt::format("{{\"report\":{},\"unchanged\":[],\"warnings\":{}}}", written, to_json_text(json_texts(warnings)));
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

}  // namespace
}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_job_run(const ggufmill_job* job, const char* options, ggufmill_control* control, char** json,
                                 ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"job", job}}));
    return run_job(*job, options, control, json);
  });
}

ggufmill_status ggufmill_plan_run(const ggufmill_plan* plan, const char* options, ggufmill_control* control,
                                  char** json, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"plan", plan}}));
    BOOST_OUTCOME_TRY(const std::string report, run_plan_of(*plan, options, control));
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
    BOOST_OUTCOME_TRY(const CalledOperation called, call_on_job(*job, "run", boost::json::object{{"discard", true}}));
    return called.failure ? Status(*called.failure) : ok();
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
    BOOST_OUTCOME_TRY(boost::json::object members, request_of(options ? options : ""));
    members.emplace("measure", false);
    BOOST_OUTCOME_TRY(const CalledOperation called, call_on_job(*job, "curve", std::move(members), control));
    *json = copy_of(called.json);
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
