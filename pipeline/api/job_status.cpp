// The state of a job: its outputs, what interrupted runs left, and its steps.

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/api/context.h"
#include "pipeline/api/job_steps.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {

namespace json = boost::json;

std::string_view name_of(StepKind kind) {
  constexpr std::string_view kNames[] = {"write",   "importance",  "quality", "card",
                                         "presets", "attestation", "upload",  "command"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool has_steps(const Batch& batch) {
  return std::ranges::any_of(batch.jobs, [](const BatchJob& each) { return has_steps(each.job); });
}

json::array describe_steps(const std::vector<JobStep>& steps) {
  json::array described;
  for (const JobStep& step : steps)
    described.push_back(json::object{{"step", name_of(step.kind)}, {"what", step.text}, {"done", step.is_done}});
  return described;
}

std::optional<bool> output_exists(const std::string& path) {
  if (!is_address(path)) {
    FileStatus info;
    return get_status(kCurrentFolder, path, Links::kFollow, info);
  }
  const auto opened = open_source(path);
  if (opened) return true;
  if (opened.error().code == ExitCode::kBadInput) return false;
  return {};
}

json::object describe_status(const Context& context, const Plan& plan, const BatchJob* with_steps) {
  const Leftovers left = context.leftovers(plan);
  const std::set<std::string> sent = with_steps ? sent_files(context, *with_steps) : std::set<std::string>();
  json::array outputs, leftovers;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) {
      const std::optional<bool> exists = output_exists(file.path);
      outputs.push_back(json::object{{"path", file.path},
                                     {"bytes", is_measured(output) ? json::value(file.bytes) : json::value()},
                                     {"there", exists ? json::value(*exists) : json::value()},
                                     {"sent", sent.contains(file.path)}});
    }
  for (const Leftover& file : left.files)
    leftovers.push_back(json::object{{"path", file.path},
                                     {"output", file.output},
                                     {"bytes", file.bytes},
                                     {"of_this_plan", file.of_this_plan},
                                     {"in_use", file.is_in_use},
                                     {"other_since", file.other_since},
                                     {"cluster_job", file.cluster_job}});
  json::object status{{"running", left.is_running()},
                      {"can_resume", left.can_resume()},
                      {"units", left.units},
                      {"units_done", left.units_done.value_or(0)},
                      {"outputs", std::move(outputs)},
                      {"leftovers", std::move(leftovers)},
                      {"cluster_jobs", json::value_from(left.cluster_jobs())}};
  if (with_steps)
    if (const auto steps = steps_of(context, *with_steps, {})) status["steps"] = describe_steps(steps.value());
  return status;
}

}  // namespace ggufmill
