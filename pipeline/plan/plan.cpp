#include "pipeline/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

Result<Model> apply_all(Model model, const StageList& stages) {
  for (const auto& stage : stages) {
    BOOST_OUTCOME_TRY(model, stage->apply(std::move(model)));
  }
  return model;
}

Result<PlannedOutput> plan_output(const Model& shared, const JobOutput& output) {
  PlannedOutput planned;
  BOOST_OUTCOME_TRY(planned.model, apply_all(shared, output.stages));
  BOOST_OUTCOME_TRY(planned.files, output.sink->layout(planned.model));
  return planned;
}

// Where a tensor's bytes lie identifies it, whatever it was renamed to.
using SourceKey = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;

SourceKey key_of(const TensorSource& source) { return {source.file, source.offset, source.bytes}; }

// One route for each source tensor that any output holds, in the order of the source files' bytes.
std::vector<Route> make_routes(const Model& source, const std::vector<PlannedOutput>& outputs) {
  std::map<SourceKey, Route> routes;
  for (const Tensor& tensor : source.tensors)
    if (tensor.source.bytes > 0) routes[key_of(tensor.source)] = {tensor.source, tensor.shape, tensor.name, {}};
  for (std::uint32_t o = 0; o < outputs.size(); ++o)
    for (std::uint32_t f = 0; f < outputs[o].files.size(); ++f)
      for (const Placement& placement : outputs[o].files[f].tensors) {
        const Tensor& tensor = outputs[o].model.tensors[placement.tensor];
        const auto route = routes.find(key_of(tensor.source));
        if (route != routes.end()) route->second.targets.push_back({o, f, placement.tensor, placement.offset});
      }
  std::vector<Route> ordered;
  for (auto& [key, route] : routes)
    if (!route.targets.empty()) ordered.push_back(std::move(route));
  return ordered;
}

// Where the paths are left to us: beside the first output.
ReportRequest placed(ReportRequest report, const std::vector<PlannedOutput>& outputs) {
  if (!report.json.empty() || !report.html.empty() || outputs.empty() || outputs[0].files.empty()) return report;
  constexpr std::string_view kEnding = ".gguf";
  std::string stem = outputs[0].files[0].path;
  if (stem.ends_with(kEnding)) stem.resize(stem.size() - kEnding.size());
  report.json = stem + ".report.json";
  report.html = stem + ".report.html";
  return report;
}

// Files that the job's parts read beside the source, and the pipeline file.
std::vector<std::string> other_inputs(const Job& job) {
  std::vector<std::string> paths = job.inputs;
  const auto add = [&](const StageList& stages) {
    for (const auto& stage : stages) {
      const std::vector<std::string> more = stage->inputs();
      paths.insert(paths.end(), more.begin(), more.end());
    }
  };
  add(job.stages);
  for (const JobOutput& output : job.outputs) add(output.stages);
  return paths;
}

// A stage that outputs share warns once.
std::vector<std::string> all_warnings(const Plan& plan) {
  std::vector<std::string> warnings = plan.source.warnings;
  for (const PlannedOutput& output : plan.outputs)
    for (const std::string& warning : output.model.warnings)
      if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) warnings.push_back(warning);
  return warnings;
}

}  // namespace

std::vector<std::string> Plan::input_paths() const {
  std::vector<std::string> paths = other_inputs;
  for (const SourceFile& file : source.files) paths.push_back(file.path);
  return paths;
}

std::uint64_t Plan::bytes_read() const {
  std::uint64_t bytes = 0;
  for (const Route& route : routes) bytes += route.source.bytes;
  return bytes;
}

std::uint64_t Plan::bytes_written() const {
  std::uint64_t bytes = 0;
  for (const PlannedOutput& output : outputs)
    for (const OutputFile& file : output.files) bytes += file.bytes;
  return bytes;
}

std::optional<Plan> make_plan(const Job& job, Diagnostics& errors) {
  Result<Model> source = job.source->open();
  if (!source) {
    errors.add(source.error());
    return {};
  }
  Plan plan;
  plan.source = source.value();
  plan.limits = job.limits;
  Result<Model> shared = apply_all(std::move(source).value(), job.stages);
  if (!shared) {
    errors.add(shared.error());
    return {};
  }
  for (const JobOutput& output : job.outputs) {
    Result<PlannedOutput> planned = plan_output(shared.value(), output);
    if (planned)
      plan.outputs.push_back(std::move(planned).value());
    else
      errors.add(planned.error());
  }
  if (!errors.empty()) return {};
  plan.file = job.file;
  plan.other_inputs = other_inputs(job);
  plan.warnings = all_warnings(plan);
  plan.trace = job.trace;
  if (job.report) plan.report = placed(*job.report, plan.outputs);
  plan.routes = make_routes(plan.source, plan.outputs);
  plan.least_memory = least_budget(plan);
  return plan;
}

}  // namespace ggufmill
