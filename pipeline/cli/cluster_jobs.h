#pragma once
// Code shared by the cluster verbs: opens the jobs in a folder and hands parts to the engine.

#include <boost/program_options.hpp>

#include "pipeline/cluster/operations.h"

namespace ggufmill {

// Returns the folder that --plan names, either directly or as the path of plan.json or matrix.json in it.
Result<std::string> folder_of_plan(const boost::program_options::variables_map& values);

// Load the array in a folder, and the kernels that its jobs request, or those of `isa` if given. Change the working
// folder to the one the jobs were submitted from, because the jobs' relative paths start there.
Result<OpenedArray> enter_array(const std::string& folder, const std::string& isa = {});
Result<OpenedPlans> enter_plans(const std::string& folder);

// Returns the path of this program, for use on other nodes.
std::string this_program();
// Prints what was submitted to the engine; with engine `none`, how to start the parts by hand.
void print_started(const ClusterArray& array, const std::vector<std::size_t>& parts,
                   const std::optional<Submission>& submitted);
// Prints the commands that start the parts and the seal by hand.
void print_manual_commands(const ClusterArray& array, const std::vector<std::size_t>& parts);

}  // namespace ggufmill
