// Operations of the C interface on jobs: run, status, discard, measure, curve, probe.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <optional>

#include "pipeline/api/describe.h"
#include "pipeline/api/job_steps.h"
#include "pipeline/api/measurement_file.h"
#include "pipeline/api/operations/given_options.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/c_api/c_support.h"
#include "pipeline/report/json_text.h"

namespace ggufmill::c {
namespace {

namespace json = boost::json;

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
  Call call{[stop = stop_of(control)] { return stop; }};
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
    BOOST_OUTCOME_TRY(const CalledOperation called, call_on_job(*job, "status", boost::json::object{}));
    if (called.failure) return *called.failure;
    *json = copy_of(called.json);
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
    BOOST_OUTCOME_TRY(const CalledOperation called, call_on_job(*job, "measure", options, control));
    if (json) *json = copy_of(called.json);
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
    BOOST_OUTCOME_TRY(boost::json::object members, request_of(options ? options : ""));
    if (!members.contains("output")) return usage_error("the option 'output' is missing", "name the file to write");
    BOOST_OUTCOME_TRY(call_on_job(*job, "probe", std::move(members), control));
    return ok();
  });
}
