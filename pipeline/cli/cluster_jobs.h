#pragma once
// What the verbs of cluster jobs share: from a folder to the jobs in it.

#include <boost/program_options.hpp>

#include "pipeline/api/ggufmill.h"
#include "pipeline/cluster/cluster_array.h"

namespace ggufmill {

// The folder of --plan, which names that or what in it says which jobs these are.
Result<std::string> folder_of_plan(const boost::program_options::variables_map& values);

struct OpenedArray {
  Context context;
  ClusterArray array;
};
// The array in a folder, and the kernels that its jobs ask for, or those of `isa`. The process goes to the folder that
// they were submitted in, which their relative paths begin at.
Result<OpenedArray> open_array(const std::string& folder, const std::string& isa = {});
// The plans of all its jobs, too.
struct OpenedPlans {
  Context context;
  PlannedArray planned;
};
Result<OpenedPlans> open_plans(const std::string& folder);

// All parts of an array.
std::vector<std::size_t> all_parts(const ClusterArray& array);
// The path of this program, for other nodes.
std::string this_program();
// Hands the parts to the engine, and a seal for after them; or says how they are started by hand.
Status start_parts(const ClusterArray& array, const std::vector<std::size_t>& parts);
void say_by_hand(const ClusterArray& array, const std::vector<std::size_t>& parts);

}  // namespace ggufmill
