#include "pipeline/cli/cluster_jobs.h"

#include <fmt/format.h>

#include <filesystem>
#include <numeric>

#include "pipeline/api/command.h"
#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cluster/slurm.h"
#include "pipeline/cluster/submit.h"
#include "pipeline/core/installation.h"
#include "pipeline/core/text.h"

namespace ggufmill {

namespace fs = std::filesystem;

Result<OpenedArray> open_array(const std::string& folder, const std::string& isa) {
  BOOST_OUTCOME_TRY(ClusterArray array, load_array(folder));
  const ClusterJob& job = array.jobs.front();
  std::error_code error;
  fs::current_path(job.working_folder, error);
  if (error)
    return Error{ExitCode::kIo, job.working_folder,
                 fmt::format("cannot enter the folder that the job was submitted from: {}", error.message()), "",
                 "all nodes must see it under this path"};
  BOOST_OUTCOME_TRY(Context context, Context::create({job.kernel_directories, isa.empty() ? job.isa : isa}));
  print_warnings(context.kernels().warnings());
  return OpenedArray{std::move(context), std::move(array)};
}

Result<OpenedPlans> open_plans(const std::string& folder) {
  BOOST_OUTCOME_TRY(OpenedArray opened, open_array(folder));
  PlannedArray planned{std::move(opened.array), {}};
  for (const ClusterJob& job : planned.array.jobs) {
    BOOST_OUTCOME_TRY(Plan plan, load_plan(job, opened.context.kernels().types()));
    planned.plans.push_back(std::move(plan));
  }
  return OpenedPlans{std::move(opened.context), std::move(planned)};
}

Result<std::string> folder_of_plan(const boost::program_options::variables_map& values) {
  const std::optional<std::string> plan = text_of(values, "plan");
  if (!plan) return usage_error("no plan given", "give --plan DIR/plan.json");
  const fs::path path = *plan;
  const bool is_file = path.filename() == "plan.json" || path.filename() == "matrix.json";
  const std::string folder = is_file ? path.parent_path().string() : path.string();
  return folder.empty() ? "." : folder;
}

std::vector<std::size_t> all_parts(const ClusterArray& array) {
  std::vector<std::size_t> parts(array.parts());
  std::iota(parts.begin(), parts.end(), std::size_t{0});
  return parts;
}

std::string this_program() {
  const std::string program = own_program();
  return program.empty() ? "ggufmill" : program;
}

void print_manual_commands(const ClusterArray& array, const std::vector<std::size_t>& parts) {
  const std::string plan = shell_word(array.plan_file());
  fmt::print("start these in any order, on any machines that see these folders:\n");
  if (!parts.empty()) fmt::print("  ggufmill part --plan {} --part K    for K in {}\n", plan, index_list(parts));
  fmt::print("  ggufmill seal --plan {} --wait 6h\n", plan);
}

Status start_parts(const ClusterArray& array, const std::vector<std::size_t>& parts) {
  if (array.jobs.front().options.engine == ClusterOptions::Engine::kNone) {
    print_manual_commands(array, parts);
    return ok();
  }
  auto submitted = submit_to_slurm(array, parts, this_program());
  if (!submitted) {
    Error error = submitted.error();
    if (!error.detail.empty() && !error.detail.ends_with('\n')) error.detail += '\n';
    error.detail += fmt::format("the job is in {}, and none of it is queued", array.folder);
    if (!error.help.empty()) error.help += "; ";
    error.help += fmt::format("`ggufmill resume {}` submits it again", array.folder);
    return error;
  }
  const Submission& now = submitted.value();
  if (!now.parts_id.empty()) print_note(fmt::format("submitted parts {} as array {}", now.indices, now.parts_id));
  print_note(fmt::format("submitted the seal as job {}; `ggufmill status {} --watch` shows its progress", now.seal_id,
                         array.folder));
  return ok();
}

}  // namespace ggufmill
