#include "pipeline/plan/problems.h"

#include <fmt/format.h>

#include <set>

namespace ggufmill {
namespace {

void check_range(const char* limit, std::uint64_t value, std::uint64_t most, Diagnostics& errors) {
  if (value > most) errors.add(usage_error(fmt::format("limits.{} is {}, and the most is {}", limit, value, most)));
}

}  // namespace

std::vector<std::string> find_problems(const Plan& plan, std::span<const std::string> also_read, Diagnostics& errors) {
  std::set<std::string> known;  // what a shared stage found, every output has
  for (const PlannedOutput& output : plan.outputs)
    for (const Error& problem : output.problems)
      if (known.insert(render(problem)).second) errors.add(problem);
  check_range("threads", plan.limits.threads, Limits::kMostThreads, errors);
  check_range("nice", plan.limits.nice, Limits::kMostNice, errors);
  std::vector<std::string> read(also_read.begin(), also_read.end());
  const std::vector<std::string> inputs = plan.input_paths();
  read.insert(read.end(), inputs.begin(), inputs.end());
  return check_distinct(written_paths(plan), read, errors);
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
