#include "pipeline/plan/problems.h"

#include <fmt/format.h>

#include <algorithm>

namespace ggufmill {
namespace {

void check_range(const char* limit, std::uint64_t value, std::uint64_t most, Diagnostics& errors) {
  if (value > most) errors.add(usage_error(fmt::format("limits.{} is {}, but the maximum is {}", limit, value, most)));
}

constexpr std::size_t kMaxListed = 8;

// A problem that several outputs share.
struct Cause {
  const Error* error;
  std::vector<std::string> outputs;  // "PATH: DETAIL"
};

// Adds one error per cause. A problem found by a shared stage occurs in every output. Problems without a position in
// the pipeline file have the same cause if their messages are equal; the error lists the affected outputs.
void add_by_cause(const Plan& plan, Diagnostics& errors) {
  std::vector<Cause> causes;
  for (const PlannedOutput& output : plan.outputs)
    for (const Error& problem : output.problems) {
      auto cause = std::ranges::find_if(causes, [&](const Cause& known) {
        return known.error->where == problem.where && known.error->what == problem.what &&
               known.error->help == problem.help && (problem.where.empty() || known.error->detail == problem.detail);
      });
      if (cause == causes.end()) cause = causes.insert(causes.end(), {&problem, {}});
      if (!output.files.empty())
        cause->outputs.push_back(output.files.front().path + (problem.detail.empty() ? "" : ": " + problem.detail));
    }
  for (const Cause& cause : causes) {
    Error error = *cause.error;
    if (error.where.empty() && plan.outputs.size() > 1) {
      error.detail.clear();
      for (std::size_t i = 0; i < std::min(cause.outputs.size(), kMaxListed); ++i)
        error.detail += (i == 0 ? "" : "\n") + cause.outputs[i];
      if (cause.outputs.size() > kMaxListed)
        error.detail += fmt::format("\nand {} more outputs", cause.outputs.size() - kMaxListed);
    }
    errors.add(std::move(error));
  }
}

void find_other_problems(const Plan& plan, Diagnostics& errors) {
  add_by_cause(plan, errors);
  check_range("threads", plan.limits.threads, Limits::kMaxThreads, errors);
  check_range("nice", plan.limits.nice, Limits::kMaxNice, errors);
}

std::vector<std::string> read_paths(const Plan& plan, std::span<const std::string> also_read) {
  std::vector<std::string> read = plan.input_paths();
  read.insert(read.begin(), also_read.begin(), also_read.end());
  return read;
}

}  // namespace

void find_problems(const Plan& plan, std::span<const std::string> also_read, Diagnostics& errors) {
  find_other_problems(plan, errors);
  check_distinct(written_paths(plan), read_paths(plan, also_read), errors);
}

void find_problems(const Plan& plan, std::span<const std::string> also_read, bool overwrite,
                   std::span<const std::string> own, Diagnostics& errors) {
  find_other_problems(plan, errors);
  std::vector<WrittenPath> written = written_paths(plan);
  for (WrittenPath& path : written) path.may_replace = std::ranges::find(own, path.path) != own.end();
  check_written(written, read_paths(plan, also_read), overwrite, errors);
}

std::vector<WrittenPath> written_paths(const Plan& plan) {
  std::vector<WrittenPath> paths;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) paths.push_back({file.path, "output", output.origin});
  for (std::size_t i = 0; plan.manifest && i < plan.outputs.size(); ++i) {
    paths.push_back({plan.manifest_path(i), "manifest"});
    paths.push_back({plan.sums_path(i), "list of checksums"});
  }
  for (const std::string& path : {plan.report.json, plan.report.html})
    if (!path.empty()) paths.push_back({path, "report"});
  if (!plan.trace.empty()) paths.push_back({plan.trace, "trace"});
  return paths;
}

}  // namespace ggufmill
