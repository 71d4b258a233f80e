#include "pipeline/cli/planning.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <charconv>
#include <cstdio>

#include "pipeline/api/operations/option_names.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
// Applies --threads and --io, which override the values in the file.
Status override_limits(const po::variables_map& values, Limits& limits) {
  if (values.count("threads")) {
    BOOST_OUTCOME_TRY(limits.threads, parse_option("--threads", threads_form(), values["threads"].as<std::string>()));
  }
  if (values.count("io")) {
    BOOST_OUTCOME_TRY(limits.io, parse_option("--io", io_form(), values["io"].as<std::string>()));
  }
  return ok();
}

}  // namespace

void add_kernel_options(po::options_description& options) {
  options.add_options()("kernel-dir", po::value<Strings>()->composing(), "folder with additional kernel modules");
  options.add_options()("isa", po::value<std::string>(),
                        "use only kernels for this ISA; `ggufmill kernels` lists them");
}

Result<Context> open_context(const po::variables_map& values) {
  auto context =
      Context::create({value_or<Strings>(values, "kernel-dir", {}), value_or<std::string>(values, "isa", {})},
                      value_or<Strings>(values, "architectures", {}));
  if (context) print_warnings(context.value().kernels().warnings());
  return context;
}

void add_architectures_option(po::options_description& options) {
  options.add_options()("architectures", po::value<Strings>()->composing(), kArchitecturesHelp);
}

void add_job_options(po::options_description& options) {
  options.add_options()("set", po::value<Strings>()->composing(), "override a value: outputs.0.gguf=out/a.gguf");
  options.add_options()("param", po::value<Strings>()->composing(), "set a declared parameter: NAME=value");
  add_architectures_option(options);
  add_kernel_options(options);
}

void add_report_options(po::options_description& options) {
  auto add = options.add_options();
  add("report", po::value<Strings>()->composing(),
      "FILE.html or FILE.json: write a report of the run; may be given once for each format");
  add("errors", "measure the error of each tensor, for the report (report.error)");
}

Status read_report_options(const po::variables_map& values, std::optional<ReportRequest>& report) {
  return add_report(value_or<Strings>(values, "report", {}), values.count("errors") > 0, report);
}

Status check_dry_run(const po::variables_map& values) {
  if (!values.count("dry-run")) return ok();
  for (const char* option : {"report", "errors", "profile", "discard"})
    if (values.count(option))
      return usage_error(fmt::format("--{} and --dry-run cannot be used together", option), "omit one of them");
  return ok();
}

Result<Loaded> load_from(const po::variables_map& values) {
  BOOST_OUTCOME_TRY(Context context, open_context(values));
  BOOST_OUTCOME_TRY(Batch batch,
                    context.load_batch(values["file"].as<std::string>(),
                                       {value_or<Strings>(values, "set", {}), value_or<Strings>(values, "param", {})}));
  return Loaded{std::move(context), std::move(batch)};
}

Status read_job_options(const po::variables_map& values, Job& job) {
  BOOST_OUTCOME_TRY(override_limits(values, job.limits));
  job.trace = value_or<std::string>(values, "profile", {});
  return ok();
}

Result<Planned> plan_job(Context context, Job job, const po::variables_map& values, IfUnmeasured if_unmeasured,
                         const std::string& source) {
  BOOST_OUTCOME_TRY(read_report_options(values, job.report));
  BOOST_OUTCOME_TRY(read_job_options(values, job));
  std::optional<BatchJob> with_steps;
  if (has_steps(job)) with_steps = BatchJob{source, job};
  job = with_known_importance(context, job);
  BOOST_OUTCOME_TRY(std::string measured, take_measurement(context, job, if_unmeasured, values.count("quiet") > 0));
  BOOST_OUTCOME_TRY(Plan plan, context.plan(job));
  if (values.count("architectures") && source.empty() && !context.has_read_maps(plan))
    return usage_error("--architectures has no effect: the job reads no checkpoint", "omit it");
  if (values.count("skip-unchanged")) {
    BOOST_OUTCOME_TRY(const std::vector<std::string> unchanged, drop_unchanged(context, plan, job));
    for (const std::string& path : unchanged) print_note(path + "  unchanged");
    if (!unchanged.empty() && job.outputs.empty()) plan.outputs.clear(), plan.steps.clear();
    if (!unchanged.empty() && !job.outputs.empty()) {
      BOOST_OUTCOME_TRY(plan, context.plan(job));
    }
  }
  print_warnings(plan.warnings);
  if (with_steps) print_warnings(step_warnings(job, plan));
  return Planned{std::move(context), std::move(plan), source, std::move(measured), std::move(with_steps)};
}

int for_each_plan(const po::variables_map& values, const std::function<int(const Planned&)>& verb) {
  auto loaded = load_from(values);
  if (!loaded) return fail(loaded.error());
  int code = 0;
  for (BatchJob& each : loaded.value().batch.jobs) {
    const std::string source = loaded.value().batch.is_matrix ? each.source : "";
    const auto planned = plan_job(loaded.value().context, std::move(each.job), values, IfUnmeasured::kLeave, source);
    const int one = planned ? verb(planned.value()) : fail(of_source({planned.error()}, source));
    if (code == 0) code = one;
  }
  return code;
}

void JsonOfPlans::add(const Planned& planned, boost::json::object object) {
  is_batch_ = !planned.source.empty();
  if (is_batch_ && !object.contains("source")) object["source"] = planned.source;
  objects_.push_back(std::move(object));
}

void JsonOfPlans::print() const {
  if (objects_.empty()) return;
  const boost::json::object all =
      is_batch_ ? boost::json::object{{"sources", boost::json::value_from(objects_)}} : objects_.front();
  std::puts(to_json_text(all).c_str());
}

Result<Planned> plan_arguments(Context context, const std::string& pipeline, std::vector<std::string> inputs,
                               const po::variables_map& values) {
  BOOST_OUTCOME_TRY(Job job, context.parse_job(pipeline, std::string(kArgumentsName)));
  for (JobOutput& output : job.outputs) output.origin = {};  // the path came from the command line, not from a file
  job.inputs = std::move(inputs);
  return plan_job(std::move(context), std::move(job), values);
}

Result<std::size_t> parse_part(std::string_view text) {
  std::size_t part = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), part);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size()) return part;
  return usage_error(fmt::format("{} is not a valid part number", quoted_name(text)), "parts are numbered from 0");
}

}  // namespace ggufmill
