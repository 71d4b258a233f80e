#pragma once
// From plans to the folder of a cluster job, or of a matrix of them.

#include <functional>
#include <string>
#include <vector>

#include "pipeline/api/ggufmill.h"
#include "pipeline/cluster/cluster_array.h"

namespace ggufmill {

struct SubmitOptions {
  ClusterOptions cluster;
  bool overwrite = false;
  KernelOptions kernels;  // that parts are to use, too
};

// The job that the plan becomes; nothing is written. Exit code 2 for what parts cannot do (direct I/O, a profile) and
// for memory that is too little.
Result<ClusterJob> make_job(const Plan& plan, const SubmitOptions& options);

// Exit code 2 where there is a job in the folder that a pipeline file's would get.
Status check_folder_is_free(const std::string& pipeline_file, const ClusterOptions& options);

// Makes its folder and its outputs, which are reserved. Exit code 2 where there is a job in the folder already, 75
// where a run is writing the outputs now. What fails leaves nothing but, perhaps, an empty folder.
Status create_job(const ClusterJob& job, const Plan& plan);

// Creates again what is gone of the job's outputs. Gives the parts that are not done, among them those whose bytes are
// gone (done_parts.h).
Result<std::vector<std::size_t>> prepare_resume(const ClusterJob& job, const Plan& plan);

// Removes the job's own files, and its folder where nothing else is in it. Not its outputs.
Status remove_job(const ClusterJob& job);

// The array that a batch becomes, of no jobs where nothing is to be written: outputs that are unchanged or that cannot
// be made are left out of it, as they are of a run of the batch. Nothing is written. `adjust`: as BatchOptions::adjust.
// Exit code 2 for fewer parts than sources.
Result<PlannedArray> plan_matrix(const Context& context, const Batch& batch, const SubmitOptions& options,
                                 const std::function<Status(const std::string& source, Job& job)>& adjust = {});
// create_job() of each. A job of a matrix for which that fails is left out; where all are, nothing is made.
Status create_array(PlannedArray& planned);
// prepare_resume() of each job that is not sealed. Parts are numbered through.
Result<std::vector<std::size_t>> prepare_resume(const PlannedArray& planned);
Status remove_array(const ClusterArray& array);

// "0-3,7": as Slurm writes array indices. And back, for messages.
std::string index_list(const std::vector<std::size_t>& parts);

}  // namespace ggufmill
