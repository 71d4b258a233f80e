// Jobs of the C interface: reading, checking and planning them; the arguments of other tools.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>

#include "pipeline/api/describe.h"
#include "pipeline/api/job_steps.h"
#include "pipeline/api/operations/jobs.h"
#include "pipeline/c_api/c_support.h"
#include "pipeline/call/json_call.h"
#include "pipeline/config/bound_fields.h"
#include "pipeline/core/json.h"
#include "pipeline/llama_cpp/quantize_options.h"
#include "pipeline/plan/written.h"
#include "pipeline/report/json_text.h"
#include "stages/huggingface/huggingface_source.h"

namespace ggufmill::c {
namespace {

namespace json = boost::json;

// The options of a job: those of operations with a pipeline file, and others.
struct JobChanges {
  JobRequest job;
  bool errors = false;
  std::string measurement, profile;
  Strings inputs;

  JobOptions file() const { return {job.set, job.parameters}; }
};

Result<JobChanges> read_changes(const char* text) {
  std::vector<OperationOption> shared{threads_option(), io_option()};
  for (Option<JobRequest>& each : pipeline_file_options())
    if (!each.is_word()) shared.push_back(std::move(each));
  using Changes = JobChanges;
  const std::vector<OperationOption> own{Option<Changes>(option("errors", &Changes::errors, "")),
                                         Option<Changes>(option("measurement", &Changes::measurement, "")),
                                         Option<Changes>(option("profile", &Changes::profile, "")),
                                         Option<Changes>(option("inputs", &Changes::inputs, ""))};
  JobChanges changes;
  BOOST_OUTCOME_TRY(read_options(text, {{std::move(shared), &changes.job}, {own, &changes}}));
  return changes;
}

Status apply(const JobChanges& changes, Job& job) {
  change_limits(changes.job, job);
  if (changes.errors) {
    if (!job.report) job.report.emplace();
    job.report->error = true;
  }
  job.trace = changes.profile;
  job.inputs.insert(job.inputs.end(), changes.inputs.begin(), changes.inputs.end());
  if (changes.measurement.empty()) return ok();
  BOOST_OUTCOME_TRY(Measurement measured, read_measurement(changes.measurement));
  give_measurement(job, std::make_shared<const Measurement>(std::move(measured)));
  job.inputs.push_back(changes.measurement);
  return ok();
}

template <class Read>
Status open_job(const ggufmill_context& context, const char* text, ggufmill_job** job, const Read& read) {
  BOOST_OUTCOME_TRY(const JobChanges changes, read_changes(text));
  BOOST_OUTCOME_TRY(Batch batch, read(changes.file()));
  if (batch.is_matrix && !changes.profile.empty())
    return usage_error("a profile is not supported for a batch", "run one of its jobs individually");
  for (BatchJob& each : batch.jobs) {
    BOOST_OUTCOME_TRY(apply(changes, each.job));
  }
  *job = new ggufmill_job{context.context, context.caller, std::move(batch)};
  return ok();
}

// The form of a described plan.
struct PlanDescription {
  bool written = false;  // as a cluster job and ggufmill_plan_read() have it
};

json::object described(const Plan& plan) {
  json::object object = describe_plan(plan);
  object["warnings"] = json_texts(plan.warnings);
  return object;
}

// Returns the plans of a job: with problems, too, but not if a source of a batch cannot be planned.
Result<std::string> plan_text(const ggufmill_job& job, const char* text) {
  BOOST_OUTCOME_TRY(json::object options, request_of(text ? text : ""));
  const bool is_written = options.contains("written") && options["written"] == true;
  if (job.batch.is_matrix && is_written)
    return usage_error("a batch has no canonical plan", "plan each source with its own pipeline file");
  BOOST_OUTCOME_TRY(const CalledOperation called, call_on_job(job, "plan", std::move(options)));
  if (!job.batch.is_matrix && !is_written) return called.json;
  BOOST_OUTCOME_TRY(const json::value result, parse_json("result", called.json));
  if (is_written) return std::string(result.at("written").as_string());
  if (result.at("sources").as_array().size() != job.batch.jobs.size()) return *called.failure;
  return called.json;
}

struct Translated {
  std::string pipeline;
  Strings inputs, warnings;
};

// Replaces the options of llama-quantize that have another form in the operation. Returns the files of tensor types.
Result<Strings> arrange_quantize(json::object& options) {
  const auto strings_at = [&](const char* name) -> Result<Strings> {
    Strings strings;
    json::value* const given = options.if_contains(name);
    if (!given) return strings;
    if (!given->is_array()) return usage_error(fmt::format("'{}' must be a list of strings", name));
    for (const json::value& each : given->get_array()) {
      if (!each.is_string()) return usage_error(fmt::format("'{}' must be a list of strings", name));
      strings.emplace_back(each.get_string());
    }
    options.erase(name);
    return strings;
  };
  BOOST_OUTCOME_TRY(const Strings words, strings_at("words"));
  BOOST_OUTCOME_TRY(const QuantizeWords arranged, arrange_words(words));
  for (const auto& [name, word] : {std::pair("input", &arranged.input),
                                   {"type", &arranged.type},
                                   {"output", &arranged.output},
                                   {"threads", &arranged.threads}})
    if (!word->empty()) options[name] = *word;
  BOOST_OUTCOME_TRY(Strings files, strings_at("tensor_type_file"));
  for (const std::string& file : files)
    options.emplace("tensor_type", json::array()).first->value().as_array().push_back(json::object{{"file", file}});
  return files;
}

// Translates the arguments of a tool with the operation that has them; `options` have the names that they have on the
// command line of the tool.
Result<Translated> from_operation(const ggufmill_context& context, const char* text, const char* operation) {
  BOOST_OUTCOME_TRY(const json::object given, request_of(text ? text : ""));
  json::object options;
  for (const auto& member : given) {
    std::string name(member.key());
    std::ranges::replace(name, '-', '_');
    options[name] = member.value();
  }
  Translated translated;
  if (options.erase("defaults") != 0)
    translated.warnings.emplace_back(
        "'defaults' has no effect: keys missing in config.json always get the defaults of their class");
  if (options.contains("merge") && options["merge"] == true) operation = "merge";
  options.erase("merge");
  if (operation == std::string_view("quantize")) {
    BOOST_OUTCOME_TRY(translated.inputs, arrange_quantize(options));
  }
  BOOST_OUTCOME_TRY(const json::object made, pipeline_of_operation(context, operation, std::move(options)));
  translated.pipeline = made.at("pipeline").as_string();
  for (const json::value& warning : made.at("warnings").as_array())
    translated.warnings.emplace_back(warning.as_string());
  return translated;
}

Result<Translated> translate(const ggufmill_context& with, const std::string& tool, const char* options) {
  if (tool == "llama-quantize") return from_operation(with, options, "quantize");
  if (tool == "convert_hf_to_gguf.py") return from_operation(with, options, "convert");
  if (tool == "convert_lora_to_gguf.py") return from_operation(with, options, "convert_lora");
  if (tool == "llama-gguf-split") return from_operation(with, options, "split");
  return usage_error(
      fmt::format("unknown tool '{}'", tool),
      "the tools are llama-quantize, convert_hf_to_gguf.py, convert_lora_to_gguf.py and llama-gguf-split");
}

}  // namespace
}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_job_open(const ggufmill_context* context, const char* path, const char* options,
                                  ggufmill_job** job, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"path", path}, {"job", job}}));
    return open_job(*context, options, job,
                    [&](const JobOptions& file) { return context->context->load_batch(path, file); });
  });
}

ggufmill_status ggufmill_job_parse(const ggufmill_context* context, const char* text, const char* name,
                                   const char* options, ggufmill_job** job, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"text", text}, {"name", name}, {"job", job}}));
    return open_job(*context, options, job,
                    [&](const JobOptions& file) { return context->context->parse_batch(text, name, file); });
  });
}

void ggufmill_job_free(ggufmill_job* job) { delete job; }

ggufmill_status ggufmill_pipeline_of(const ggufmill_context* context, const char* tool, const char* options,
                                     char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"tool", tool}, {"json", json}}));
    BOOST_OUTCOME_TRY(const auto translated, translate(*context, tool, options));
    *json = copy_of(to_json_text(boost::json::object{{"pipeline", translated.pipeline},
                                                     {"inputs", json_texts(translated.inputs)},
                                                     {"warnings", json_texts(translated.warnings)}}));
    return ok();
  });
}

ggufmill_status ggufmill_job_check(const ggufmill_job* job, const char* options, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"job", job}}));
    BOOST_OUTCOME_TRY(const CalledOperation called, call_on_job(*job, "check", options));
    return called.failure ? Status(*called.failure) : ok();
  });
}

ggufmill_status ggufmill_job_plan(const ggufmill_job* job, const char* options, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"job", job}, {"json", json}}));
    BOOST_OUTCOME_TRY(const std::string text, plan_text(*job, options));
    *json = copy_of(text);
    return ok();
  });
}

ggufmill_status ggufmill_plan_create(const ggufmill_job* job, ggufmill_plan** plan, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"job", job}, {"plan", plan}}));
    if (job->batch.is_matrix) return usage_error("a batch has no plan", "plan each source with its own pipeline file");
    const Context& context = *job->context;
    BOOST_OUTCOME_TRY(Plan made, context.plan(with_known_importance(context, job->batch.jobs.front().job)));
    *plan = new ggufmill_plan{job->context, std::move(made)};
    return ok();
  });
}

void ggufmill_plan_free(ggufmill_plan* plan) { delete plan; }

ggufmill_status ggufmill_plan_check(const ggufmill_plan* plan, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"plan", plan}}));
    Diagnostics errors;
    for (Error& problem : plan->context->problems(plan->plan)) errors.add(std::move(problem));
    if (errors.empty()) return ok();
    return errors.together();
  });
}

ggufmill_status ggufmill_plan_describe(const ggufmill_plan* plan, const char* options, char** json,
                                       ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"plan", plan}, {"json", json}}));
    PlanDescription wanted;
    BOOST_OUTCOME_TRY(read_options(options, {{{option("written", &PlanDescription::written, "")}, &wanted}}));
    *json = copy_of(wanted.written ? write_plan(plan->plan) : to_json_text(described(plan->plan)));
    return ok();
  });
}
