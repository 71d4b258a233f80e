#include "pipeline/cli/cluster_jobs.h"

#include <fmt/format.h>

#include <filesystem>

#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/core/text.h"

namespace ggufmill {

namespace fs = std::filesystem;

Result<ClusterPlan> open_cluster_job(const std::string& folder, const std::string& isa) {
  BOOST_OUTCOME_TRY(ClusterJob job, load_job_folder(folder));
  std::error_code error;
  fs::current_path(job.working_folder, error);
  if (error)
    return Error{ExitCode::kIo, job.working_folder,
                 fmt::format("cannot go to the folder that the job was submitted in: {}", error.message()), "",
                 "all nodes have to see it under this path"};
  BOOST_OUTCOME_TRY(Context context, Context::create({job.kernel_directories, isa.empty() ? job.isa : isa}));
  say_warnings(context.kernels().warnings());
  BOOST_OUTCOME_TRY(Plan plan, load_plan(job, context.kernels().types()));
  return ClusterPlan{std::move(context), std::move(job), std::move(plan)};
}

Result<ClusterPlan> open_cluster_job(const boost::program_options::variables_map& values) {
  const std::optional<std::string> plan = text_of(values, "plan");
  if (!plan) return usage_error("no plan given", "--plan DIR/plan.json names it");
  const fs::path path = *plan;
  const std::string folder = path.filename() == "plan.json" ? path.parent_path().string() : path.string();
  return open_cluster_job(folder.empty() ? "." : folder, text_of(values, "isa").value_or(""));
}

}  // namespace ggufmill
