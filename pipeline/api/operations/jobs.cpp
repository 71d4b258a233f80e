#include "pipeline/api/operations/jobs.h"

#include <fmt/format.h>

#include "pipeline/api/operations/measuring.h"
#include "pipeline/api/table.h"
#include "pipeline/config/node_text.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

constexpr const char* kContentsName = "job";  // the path of contents in messages

Form<PipelineFile> pipeline_file_form() {
  auto at_path = converted<PipelineFile>(path(), [](std::string path) {
    const bool is_text = path.find('\n') != path.npos;
    return is_text ? PipelineFile{kContentsName, std::move(path)} : PipelineFile{std::move(path), {}};
  });
  auto contents =
      converted<PipelineFile>(dictionary_of(any_value()), [](NamedValues<ConfigNode>, const ConfigNode& node) {
        return PipelineFile{kContentsName, yaml_of(node, YamlLayout::kLines)};
      });
  return either<PipelineFile>(std::move(at_path), std::move(contents));
}

// Texts "NAME=VALUE", or values by name.
Form<std::vector<std::string>> settings_form(std::string (*text_of_value)(const ConfigNode& value)) {
  using Texts = std::vector<std::string>;
  auto by_name = converted<Texts>(dictionary_of(any_value()), [text_of_value](NamedValues<ConfigNode> values) {
    Texts texts;
    for (const auto& [name, value] : values) texts.push_back(fmt::format("{}={}", name, text_of_value(value)));
    return texts;
  });
  return either<Texts>(std::move(by_name), list_of(text()));
}

std::string as_yaml(const ConfigNode& value) { return yaml_of(value, YamlLayout::kOneLine); }
std::string as_parameter(const ConfigNode& value) { return value.is_scalar() ? value.scalar : as_yaml(value); }

}  // namespace

std::vector<Option<JobRequest>> pipeline_file_options() {
  using Request = JobRequest;
  return {
      option("job", &Request::job, pipeline_file_form(),
             "the pipeline file, or its contents: an object, or a text of several lines")
          .word("FILE"),
      option("set", &Request::set, settings_form(as_yaml), "override a value: outputs.0.gguf=out/a.gguf"),
      option("parameters", &Request::parameters, settings_form(as_parameter), "set a declared parameter: NAME=value")
          .on_command_line("param")};
}

Option<JobRequest> threads_option() {
  return option("threads", &JobRequest::threads, threads_form(), "number of threads, or auto; overrides limits.threads")
      .or_zero();
}

Option<JobRequest> io_option() {
  return option("io", &JobRequest::io, io_form(), "I/O mode: cached, streaming, or direct; overrides limits.io");
}

Result<Batch> jobs_of(const Context& context, const JobRequest& request, const Call& call) {
  if (call.jobs) return *call.jobs;
  const JobOptions options{request.set, request.parameters};
  return request.job.text.empty() ? context.load_batch(request.job.path, options)
                                  : context.parse_batch(request.job.text, request.job.path, options);
}

Result<Job> single_job(const Context& context, const JobRequest& request, const Call& call, std::string_view what,
                       std::string_view help) {
  BOOST_OUTCOME_TRY(Batch batch, jobs_of(context, request, call));
  if (batch.is_matrix) return usage_error(fmt::format("{} is not supported for a batch", what), std::string(help));
  change_limits(request, batch.jobs.front().job);
  return std::move(batch.jobs.front().job);
}

void change_limits(const JobRequest& request, Job& job) {
  if (request.threads) job.limits.threads = *request.threads;
  if (request.io) job.limits.io = *request.io;
}

Result<PlannedJob> plan_job(const Context& context, Job job, const JobRequest& request, const Call& call,
                            IfUnmeasured if_unmeasured, const std::string& source) {
  change_limits(request, job);
  std::optional<BatchJob> with_steps;
  if (has_steps(job)) with_steps = BatchJob{source, job};
  job = with_known_importance(context, job);
  BOOST_OUTCOME_TRY(std::string measured, take_measurement(context, job, if_unmeasured, call));
  BOOST_OUTCOME_TRY(Plan plan, context.plan(job));
  if (call.is_program && !context.maps().empty() && source.empty() && !context.has_read_maps(plan))
    return usage_error(option_reference("architectures") + " has no effect: the job reads no checkpoint", "omit it");
  call.warn_all(plan.warnings);
  if (with_steps) call.warn_all(step_warnings(job, plan));
  return PlannedJob{std::move(plan), source, std::move(measured), std::move(with_steps)};
}

Result<bool> for_each_plan(const Context& context, const JobRequest& request, const Call& call, Diagnostics& errors,
                           const std::function<std::vector<Error>(const PlannedJob&)>& work) {
  BOOST_OUTCOME_TRY(Batch batch, jobs_of(context, request, call));
  for (BatchJob& each : batch.jobs) {
    const std::string source = batch.is_matrix ? each.source : "";
    const auto planned = plan_job(context, std::move(each.job), request, call, IfUnmeasured::kLeave, source);
    const std::vector<Error> found = planned ? work(planned.value()) : std::vector<Error>{planned.error()};
    for (const Error& error : of_source(found, source)) errors.add(error);
  }
  return batch.is_matrix;
}

void write_objects(std::vector<ObjectOfJob> objects, const TextSink& sink) {
  if (objects.empty()) return sink("{}");
  if (objects.front().source.empty()) return sink(to_json_text(objects.front().object));
  boost::json::array sources;
  for (ObjectOfJob& each : objects) {
    if (!each.object.contains("source")) each.object["source"] = each.source;
    sources.push_back(std::move(each.object));
  }
  sink(to_json_text(boost::json::object{{"sources", std::move(sources)}}));
}

std::string table_of(const std::vector<JobStep>& steps) {
  std::vector<Row> rows;
  for (const JobStep& step : steps)
    rows.push_back(
        {std::to_string(rows.size() + 1), std::string(name_of(step.kind)), step.is_done ? "done" : "", step.text});
  return render_table({{"", Align::kRight}, {"step"}, {""}, {""}}, rows);
}

}  // namespace ggufmill
