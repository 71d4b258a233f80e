#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>

#include "pipeline/cli/planning.h"
#include "pipeline/cli/table.h"
#include "pipeline/graph/work.h"
#include "pipeline/io/output_target.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> paths_of(const Plan& plan) {
  std::vector<std::string> paths;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) paths.push_back(file.path);
  for (const std::string& path : {plan.report.json, plan.report.html})
    if (!path.empty()) paths.push_back(path);
  return paths;
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

void check_targets(const Plan& plan, bool overwrite, Diagnostics& errors) {
  AtomicFile::Options options{overwrite, {}, IoMode::kCached};
  for (const SourceFile& input : plan.source.files) options.inputs.push_back(input.path);
  std::map<fs::path, std::string> places;
  for (const std::string& path : paths_of(plan)) {
    std::error_code ignored;
    const auto [other, is_new] = places.emplace(fs::weakly_canonical(fs::absolute(path, ignored), ignored), path);
    const auto target = split_target(path);
    if (!is_new)
      errors.add({ExitCode::kUsage, path, fmt::format("the output is the same file as the output '{}'", other->second),
                  "", "give each output a path of its own"});
    else if (!target)
      errors.add(target.error());
    else if (const auto there = check_target(path, options); !there)
      errors.add(there.error());
    else if (const Status folder = check_folder(path); !folder)
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

void check_memory(const Planned& planned, Diagnostics& errors) {
  const Plan& plan = planned.plan;
  if (plan.limits.memory >= plan.least_memory) return;
  errors.add({ExitCode::kUsage, planned.job.file,
              fmt::format("limits.memory is {}, and the longest row needs {}", human_bytes(plan.limits.memory),
                          human_bytes(plan.least_memory)),
              "", fmt::format("set limits.memory to {}MiB or more", (plan.least_memory >> 20) + 1)});
}

}  // namespace

void add_problems(const Plan& plan, Diagnostics& errors) {
  for (const PlannedOutput& output : plan.outputs)
    for (const Error& problem : output.model.problems) errors.add(problem);
}

void preflight(const Planned& planned, bool overwrite, Diagnostics& errors) {
  add_problems(planned.plan, errors);
  const bool has_problems = !errors.empty();  // importance that lacks is told already
  const auto bound = bind_kernels(planned.plan, *planned.kernels);
  if (!bound && (!has_problems || bound.error().code == ExitCode::kKernel)) errors.add(bound.error());
  check_targets(planned.plan, overwrite, errors);
  check_space(planned.plan, errors);
  check_memory(planned, errors);
}

}  // namespace ggufmill
