#pragma once
// Code shared by the cluster verbs: opens the jobs in a folder and hands parts to the engine.

#include <boost/program_options.hpp>

#include "pipeline/api/context.h"
#include "pipeline/cluster/cluster_array.h"

namespace ggufmill {

// Returns the folder that --plan names, either directly or as the path of plan.json or matrix.json in it.
Result<std::string> folder_of_plan(const boost::program_options::variables_map& values);

struct OpenedArray {
  Context context;
  ClusterArray array;
};
// Loads the array in a folder, and the kernels that its jobs request, or those of `isa` if given. Changes the working
// directory to the one the jobs were submitted from, because the jobs' relative paths start there.
Result<OpenedArray> open_array(const std::string& folder, const std::string& isa = {});
// An array with the plans of all its jobs.
struct OpenedPlans {
  Context context;
  PlannedArray planned;
};
Result<OpenedPlans> open_plans(const std::string& folder);

// Returns the numbers of all parts of an array.
std::vector<std::size_t> all_parts(const ClusterArray& array);
// Returns the path of this program, for use on other nodes.
std::string this_program();
// Submits the parts and a seal that runs after them to the engine; with engine `none`, prints how to start them by
// hand.
Status start_parts(const ClusterArray& array, const std::vector<std::size_t>& parts);
// Prints the commands that start the parts and the seal by hand.
void print_manual_commands(const ClusterArray& array, const std::vector<std::size_t>& parts);

}  // namespace ggufmill
