#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "pipeline/cli/planning.h"
#include "pipeline/cli/table.h"
#include "pipeline/graph/work.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;

// The nearest folder above `path` that is there: the output's own may yet have to be made.
fs::path existing_folder(const std::string& path) {
  std::error_code ignored;
  fs::path folder = fs::absolute(path, ignored).parent_path();
  while (!fs::is_directory(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

void check_target(const Plan& plan, const OutputFile& file, bool overwrite, Diagnostics& errors) {
  std::error_code ignored;
  if (!fs::exists(file.path, ignored)) return;
  for (const SourceFile& input : plan.source.files)
    if (fs::equivalent(input.path, file.path, ignored))
      return errors.add({ExitCode::kUsage, file.path, "the output is also an input", "", "write to another path"});
  if (fs::is_directory(file.path, ignored))
    return errors.add({ExitCode::kUsage, file.path, "the output is a folder", "", "give the path of a file"});
  if (!overwrite)
    errors.add({ExitCode::kUsage, file.path, "the output is there already", "", "give --overwrite to replace it"});
}

void check_space(const Plan& plan, Diagnostics& errors) {
  std::map<fs::path, std::uint64_t> needed;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) needed[existing_folder(file.path)] += file.bytes;
  for (const auto& [folder, bytes] : needed) {
    std::error_code unknown;
    const fs::space_info space = fs::space(folder, unknown);
    if (!unknown && space.available < bytes)
      errors.add({ExitCode::kIo, folder.string(),
                  fmt::format("the outputs need {}, and {} are free", human_bytes(bytes), human_bytes(space.available)),
                  "", "free some space or write elsewhere"});
  }
}

}  // namespace

void add_problems(const Plan& plan, Diagnostics& errors) {
  for (const PlannedOutput& output : plan.outputs)
    for (const Error& problem : output.model.problems) errors.add(problem);
}

void preflight(const Plan& plan, const Kernels& kernels, bool overwrite, Diagnostics& errors) {
  add_problems(plan, errors);
  if (const auto bound = bind_kernels(plan, kernels); !bound) errors.add(bound.error());

  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) check_target(plan, file, overwrite, errors);
  check_space(plan, errors);
  if (plan.limits.memory < plan.least_memory)
    errors.add(usage_error(
        fmt::format("limits.memory is {} bytes, and the widest row needs {}", plan.limits.memory, plan.least_memory),
        fmt::format("set limits.memory to {}MiB or more", (plan.least_memory >> 20) + 1)));
}

}  // namespace ggufmill
