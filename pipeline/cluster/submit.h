#pragma once
// Creates the folder of a cluster job, or of a matrix of them, from plans.

#include <functional>
#include <string>
#include <vector>

#include "pipeline/api/context.h"
#include "pipeline/cluster/cluster_array.h"

namespace ggufmill {

struct SubmitOptions {
  ClusterOptions cluster;
  bool overwrite = false;
  KernelOptions kernels;  // that the parts should use
};

// Returns the job for a plan; writes nothing. Fails with exit code 2 if the plan uses features that parts do not
// support (direct I/O, a profile) or if the parts have too little memory.
Result<ClusterJob> make_job(const Plan& plan, const SubmitOptions& options);

// Fails with exit code 2 if the folder for the pipeline file's job already contains a job.
Status check_folder_is_free(const std::string& pipeline_file, const ClusterOptions& options);

// Creates the job's folder and its outputs, with their disk space reserved. Fails with exit code 2 if the folder
// already contains a job, and with 75 if a run is currently writing the outputs. On failure nothing is left behind,
// except possibly an empty folder.
Status create_job(const ClusterJob& job, const Plan& plan);

// Recreates missing outputs of the job. Returns the parts that are not done, including those whose bytes are missing
// (done_parts.h).
Result<std::vector<std::size_t>> prepare_resume(const ClusterJob& job, const Plan& plan);

// Removes the job's own files, and its folder if nothing else is in it. Keeps the outputs.
Status remove_job(const ClusterJob& job);

// Returns the array for a batch; writes nothing. Outputs that are unchanged or cannot be made are omitted from the
// jobs, as in a run of the batch; if nothing is to be written, the array has no jobs. For `adjust` see
// BatchOptions::adjust. Fails with exit code 2 if there are fewer parts than sources.
Result<PlannedArray> plan_matrix(const Context& context, const Batch& batch, const SubmitOptions& options,
                                 const std::function<Status(const std::string& source, Job& job)>& adjust = {});
// Calls create_job() for each job. A job of a matrix that fails is omitted; if all fail, nothing is created.
Status create_array(PlannedArray& planned);
// Calls prepare_resume() for each job that is not sealed. Returns part numbers of the array.
Result<std::vector<std::size_t>> prepare_resume(const PlannedArray& planned);
Status remove_array(const ClusterArray& array);

// Formats part numbers as Slurm array indices, for example "0-3,7". Also used in messages.
std::string index_list(const std::vector<std::size_t>& parts);

}  // namespace ggufmill
