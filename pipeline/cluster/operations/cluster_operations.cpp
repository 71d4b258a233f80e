#include "pipeline/cluster/operations/cluster_operations.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/io/command.h"
#include "pipeline/core/installation.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {
namespace {

// Loads an array and enters the folder that it was submitted from.
Result<ClusterArray> enter_folder_of(const std::string& folder, const Call& call) {
  BOOST_OUTCOME_TRY(ClusterArray array, load_array(folder));
  if (!call.is_program) return array;
  const std::string& working_folder = array.jobs.front().working_folder;
  std::error_code error;
  fs::current_path(working_folder, error);
  if (!error) return array;
  return Error{ExitCode::kIo, working_folder,
               fmt::format("cannot enter the folder that the job was submitted from: {}", error.message()), "",
               "all nodes must see it under this path"};
}

// Warns about kernels, unless that was done for `context`.
void warn_of_kernels(const Context& opened, const Context& context, const Call& call) {
  const std::vector<std::string>& known = context.kernels().warnings();
  for (const std::string& warning : opened.kernels().warnings())
    if (std::ranges::count(known, warning) == 0) call.warn(warning);
}

}  // namespace

std::vector<OperationSpec> cluster_operations() {
  return {status_operation(), submit_operation(), resume_operation(), cancel_operation(),
          render_operation(), part_operation(),   seal_operation()};
}

Result<std::string> folder_of_plan(const std::string& plan) {
  if (plan.empty())
    return usage_error("no plan given", fmt::format("give {}", option_reference("plan", "DIR/plan.json")));
  const fs::path path = plan;
  const bool is_file = path.filename() == "plan.json" || path.filename() == "matrix.json";
  const std::string folder = is_file ? path.parent_path().string() : path.string();
  return folder.empty() ? "." : folder;
}

Result<OpenedArray> enter_array(const std::string& folder, const Context& context, const Call& call,
                                const std::string& isa) {
  BOOST_OUTCOME_TRY(ClusterArray array, enter_folder_of(folder, call));
  BOOST_OUTCOME_TRY(OpenedArray opened, open_array(std::move(array), isa));
  warn_of_kernels(opened.context, context, call);
  return opened;
}

Result<OpenedPlans> enter_plans(const std::string& folder, const Context& context, const Call& call) {
  BOOST_OUTCOME_TRY(ClusterArray array, enter_folder_of(folder, call));
  BOOST_OUTCOME_TRY(OpenedPlans opened, open_plans(std::move(array)));
  warn_of_kernels(opened.context, context, call);
  return opened;
}

std::string program_on_nodes(const std::string& given, const Call& call) {
  if (!given.empty()) return given;
  const std::string program = call.is_program ? own_program() : "";
  return program.empty() ? "ggufmill" : program;
}

std::string how_to_start(const ClusterArray& array, const std::vector<std::size_t>& parts) {
  const std::string plan = shell_word(array.plan_file());
  std::string text = "start these in any order, on any machines that see these folders:\n";
  if (!parts.empty())
    text += fmt::format("  ggufmill part --plan {} --part K    for K in {}\n", plan, index_list(parts));
  return text + fmt::format("  ggufmill seal --plan {} --wait 6h\n", plan);
}

void note_started(const StartedArray& started, const Call& call) {
  if (!started.submitted) return;
  if (!started.submitted->parts_id.empty())
    call.note({fmt::format("submitted parts {} as array {}", started.submitted->indices, started.submitted->parts_id)});
  call.note({fmt::format("submitted the seal as job {}; `ggufmill status {} --watch` shows its progress",
                         started.submitted->seal_id, started.array.folder)});
}

boost::json::value describe_submission(const std::optional<Submission>& submitted) {
  if (!submitted) return nullptr;
  return boost::json::object{
      {"parts", submitted->parts_id}, {"indices", submitted->indices}, {"seal", submitted->seal_id}};
}

}  // namespace ggufmill
