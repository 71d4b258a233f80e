#pragma once
// The operations on cluster jobs, and what they have in common.

#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/operations/operation.h"
#include "pipeline/cluster/job_folder.h"

namespace ggufmill {

// Returns all of them, in the order of `ggufmill --help`.
std::vector<OperationSpec> cluster_operations();

// The declarations, each in a file of its own.
OperationSpec status_operation();
OperationSpec submit_operation();
OperationSpec resume_operation();
OperationSpec cancel_operation();
OperationSpec render_operation();
OperationSpec part_operation();
OperationSpec seal_operation();

// Returns the folder of --plan, which names it directly or as the path of plan.json or matrix.json in it.
Result<std::string> folder_of_plan(const std::string& plan);

// Load the array in a folder, and the kernels that its jobs request, or those of `isa` if given. The program enters the
// folder that the jobs were submitted from, where their relative paths start.
Result<OpenedArray> enter_array(const std::string& folder, const Context& context, const Call& call,
                                const std::string& isa = {});
Result<OpenedPlans> enter_plans(const std::string& folder, const Context& context, const Call& call);

// Returns the path of the program on other nodes: `given`, or if that is empty, this program.
std::string program_on_nodes(const std::string& given, const Call& call);

// The parts of an array that were started.
struct StartedArray {
  ClusterArray array;
  std::vector<std::size_t> parts;
  std::optional<Submission> submitted{};  // none with the engine `none`
};
// Returns how to start the parts by hand, with the engine `none`; else notes what was submitted.
std::string how_to_start(const ClusterArray& array, const std::vector<std::size_t>& parts);
void note_started(const StartedArray& started, const Call& call);
// Returns {parts, indices, seal}, or null.
boost::json::value describe_submission(const std::optional<Submission>& submitted);

}  // namespace ggufmill
