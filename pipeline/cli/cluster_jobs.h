#pragma once
// What the verbs of cluster jobs share: from a folder to the job in it.

#include <boost/program_options.hpp>

#include "pipeline/api/ggufmill.h"
#include "pipeline/cluster/cluster_job.h"

namespace ggufmill {

struct ClusterPlan {
  Context context;
  ClusterJob job;
  Plan plan;
};

// The job of --plan, with its plan and the kernels that it asks for, or those of --isa. The process goes to the folder
// that the job was submitted in, which its relative paths begin at.
Result<ClusterPlan> open_cluster_job(const boost::program_options::variables_map& values);
// The same of a folder.
Result<ClusterPlan> open_cluster_job(const std::string& folder, const std::string& isa = {});

// All parts of a job.
std::vector<std::size_t> all_parts(const ClusterJob& job);
// The path of this program, for other nodes.
std::string this_program();
// Hands the parts to the job's engine, and a seal for after them; or says how they are started by hand.
Status start_parts(const ClusterJob& job, const std::vector<std::size_t>& parts);
void say_by_hand(const ClusterJob& job, const std::vector<std::size_t>& parts);

}  // namespace ggufmill
