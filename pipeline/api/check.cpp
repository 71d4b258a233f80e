#include "pipeline/api/check.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>

#include "pipeline/core/text.h"
#include "pipeline/graph/bind.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/output_target.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;

std::vector<WrittenPath> written_by(const Plan& plan) {
  std::vector<WrittenPath> paths;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) paths.push_back({file.path});
  for (const std::string& path : {plan.report.json, plan.report.html})
    if (!path.empty()) paths.push_back({path, "report"});
  if (!plan.trace.empty()) paths.push_back({plan.trace, "trace"});
  return paths;
}

void check_range(const char* limit, std::uint64_t value, std::uint64_t most, Diagnostics& errors) {
  if (value > most) errors.add(usage_error(fmt::format("limits.{} is {}, and the most is {}", limit, value, most)));
}

void check_limits(const Plan& plan, Diagnostics& errors) {
  check_range("threads", plan.limits.threads, Limits::kMostThreads, errors);
  check_range("nice", plan.limits.nice, Limits::kMostNice, errors);
}

// The nearest thing above `path` that is there: the output's own folder may yet have to be made.
fs::path nearest_above(const std::string& path) {
  std::error_code ignored;
  fs::path above = fs::path(path).parent_path();
  while (!above.empty() && !fs::exists(above, ignored) && above.has_relative_path()) above = above.parent_path();
  return above.empty() ? fs::path(".") : above;
}

Status check_folder(const std::string& path) {
  const fs::path above = nearest_above(path);
  std::error_code ignored;
  if (!fs::is_directory(above, ignored))
    return Error{ExitCode::kUsage, path, fmt::format("'{}' is a file, not a folder", above.string()), "",
                 "name another output"};
  if (::access(above.c_str(), W_OK | X_OK) != 0)
    return io_error(path, fmt::format("create files in '{}'", above.string()), errno);
  return ok();
}

// Of a path that is refused already nothing more is said.
bool is_refused(const std::string& path, const Diagnostics& errors) {
  return std::any_of(errors.errors().begin(), errors.errors().end(),
                     [&](const Error& error) { return error.where == path; });
}

void check_targets(const Plan& plan, bool overwrite, Diagnostics& errors) {
  for (const WrittenPath& target : written_by(plan)) {
    if (is_refused(target.path, errors)) continue;
    const auto parts = split_target(target.path);
    if (!parts)
      errors.add(parts.error());
    else if (const auto there = check_target(target.path, {overwrite, {}}); !there)
      errors.add(there.error());
    else if (const Status folder = check_folder(target.path); !folder)
      errors.add(folder.error());
  }
}

// What all outputs on one disk need.
struct Need {
  fs::path folder;
  std::uint64_t bytes = 0;
};

void check_space(const Plan& plan, Diagnostics& errors) {
  std::map<dev_t, Need> disks;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) {
      const fs::path folder = nearest_above(file.path);
      struct stat info {};
      if (::stat(folder.c_str(), &info) != 0) continue;
      Need& need = disks.try_emplace(info.st_dev, Need{folder, 0}).first->second;
      need.bytes += file.bytes;
    }
  for (const auto& [device, need] : disks) {
    std::error_code unknown;
    const fs::space_info space = fs::space(need.folder, unknown);
    if (!unknown && space.available < need.bytes)
      errors.add(
          {ExitCode::kIo, need.folder.string(),
           fmt::format("the outputs need {}, and {} are free", human_bytes(need.bytes), human_bytes(space.available)),
           "", "free some space or write elsewhere"});
  }
}

void check_memory(const Plan& plan, Diagnostics& errors) {
  if (plan.limits.memory >= plan.least_memory) return;
  errors.add({ExitCode::kUsage, plan.file,
              fmt::format("limits.memory is {}, but the longest row needs {}", human_bytes(plan.limits.memory),
                          human_bytes(plan.least_memory)),
              "", fmt::format("set limits.memory to {}MiB or more", (plan.least_memory >> 20) + 1)});
}

}  // namespace

void find_problems(const Plan& plan, const Kernels& kernels, Diagnostics& errors) {
  std::set<std::string> known;  // what a shared stage found, every output has
  for (const PlannedOutput& output : plan.outputs)
    for (const Error& problem : output.problems)
      if (known.insert(render(problem)).second) errors.add(problem);
  const bool has_problems = !errors.empty();  // importance that lacks is told already
  const auto bound = bind_kernels(plan, kernels);
  if (!bound && (!has_problems || bound.error().code == ExitCode::kKernel)) errors.add(bound.error());
  check_limits(plan, errors);
  check_distinct(written_by(plan), inputs_of(plan, kernels), errors);
}

void check_here(const Plan& plan, bool overwrite, Diagnostics& errors) {
  check_targets(plan, overwrite, errors);
  check_space(plan, errors);
  check_memory(plan, errors);
}

std::vector<std::string> module_paths(const Kernels& kernels) {
  std::vector<std::string> paths;
  for (const ModuleReport& report : kernels.reports())
    if (report.path.find('/') != std::string::npos) paths.push_back(report.path);  // the others are built in
  return paths;
}

std::vector<std::string> inputs_of(const Plan& plan, const Kernels& kernels) {
  std::vector<std::string> paths = module_paths(kernels);
  const std::vector<std::string> files = plan.input_paths();
  paths.insert(paths.end(), files.begin(), files.end());
  return paths;
}

}  // namespace ggufmill
