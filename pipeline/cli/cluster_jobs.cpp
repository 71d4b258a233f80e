#include "pipeline/cli/cluster_jobs.h"

#include <fmt/format.h>

#include "pipeline/api/command.h"
#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/core/installation.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {

namespace {

// Loads an array and enters the folder that it was submitted from.
Result<ClusterArray> enter_folder_of(const std::string& folder) {
  BOOST_OUTCOME_TRY(ClusterArray array, load_array(folder));
  const std::string& working_folder = array.jobs.front().working_folder;
  std::error_code error;
  fs::current_path(working_folder, error);
  if (!error) return array;
  return Error{ExitCode::kIo, working_folder,
               fmt::format("cannot enter the folder that the job was submitted from: {}", error.message()), "",
               "all nodes must see it under this path"};
}

}  // namespace

Result<OpenedArray> enter_array(const std::string& folder, const std::string& isa) {
  BOOST_OUTCOME_TRY(ClusterArray array, enter_folder_of(folder));
  BOOST_OUTCOME_TRY(OpenedArray opened, open_array(std::move(array), isa));
  print_warnings(opened.context.kernels().warnings());
  return opened;
}

Result<OpenedPlans> enter_plans(const std::string& folder) {
  BOOST_OUTCOME_TRY(ClusterArray array, enter_folder_of(folder));
  BOOST_OUTCOME_TRY(OpenedPlans opened, open_plans(std::move(array)));
  print_warnings(opened.context.kernels().warnings());
  return opened;
}

Result<std::string> folder_of_plan(const boost::program_options::variables_map& values) {
  const std::optional<std::string> plan = text_of(values, "plan");
  if (!plan) return usage_error("no plan given", "give --plan DIR/plan.json");
  const fs::path path = *plan;
  const bool is_file = path.filename() == "plan.json" || path.filename() == "matrix.json";
  const std::string folder = is_file ? path.parent_path().string() : path.string();
  return folder.empty() ? "." : folder;
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

void print_started(const ClusterArray& array, const std::vector<std::size_t>& parts,
                   const std::optional<Submission>& submitted) {
  if (!submitted) return print_manual_commands(array, parts);
  if (!submitted->parts_id.empty())
    print_note(fmt::format("submitted parts {} as array {}", submitted->indices, submitted->parts_id));
  print_note(fmt::format("submitted the seal as job {}; `ggufmill status {} --watch` shows its progress",
                         submitted->seal_id, array.folder));
}

}  // namespace ggufmill
