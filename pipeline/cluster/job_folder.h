#pragma once
// Operations on the folders of cluster jobs, as the cluster verbs and the C interface offer them.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/context.h"
#include "pipeline/cluster/cluster_array.h"
#include "pipeline/cluster/part.h"
#include "pipeline/cluster/seal.h"
#include "pipeline/cluster/slurm.h"
#include "pipeline/cluster/status.h"
#include "pipeline/cluster/submit.h"

namespace ggufmill {

struct OpenedArray {
  Context context;
  ClusterArray array;
};
// Loads the kernels that the jobs of an array request, or those of `isa` if given. Relative paths of the jobs start at
// the folder that they were submitted from, which must be the working folder of the process: fails with exit code 2
// otherwise.
Result<OpenedArray> open_array(ClusterArray array, const std::string& isa = {});

// An array with the plans of all its jobs.
struct OpenedPlans {
  Context context;
  PlannedArray planned;
};
Result<OpenedPlans> open_plans(ClusterArray array);

// Returns the numbers of all parts of an array.
std::vector<std::size_t> all_parts(const ClusterArray& array);

// Returns a plan as an array of one job, after Context::check(); writes nothing.
Result<PlannedArray> plan_single(const Context& context, const Plan& plan, const SubmitOptions& options);

// Submits the parts and a seal that runs after them to the engine of the array; returns nothing for the engine `none`,
// whose parts the user starts. `program` is the path of this program on the nodes.
Result<std::optional<Submission>> start_parts(const ClusterArray& array, const std::vector<std::size_t>& parts,
                                              const std::string& program);

// Runs a part of an array, numbered across its jobs, within the limits of this machine (take_limits()), or on `threads`
// threads if given. `options.part` is ignored. `progress` receives the bytes read and those to read. Fails with exit
// code 2 if there is no such part.
Result<PartOutcome> run_part(const OpenedArray& opened, std::size_t part, std::optional<unsigned> threads,
                             PartOptions options,
                             const std::function<void(std::uint64_t done, std::uint64_t total)>& progress);

struct SealedArray {
  std::vector<Result<SealOutcome>> outcomes;  // per job
  BatchReport report;  // of a matrix: the outputs of all sources, including those omitted from the jobs
};
// Seals the jobs of an array, and writes the report of a matrix.
SealedArray seal_array(const OpenedPlans& opened, const SealOptions& options);

struct Resumed {
  bool was_sealed = false;              // there was nothing to do
  std::vector<std::size_t> parts;       // to be run again
  std::vector<std::string> warnings;    // set if the engine could not be queried
  std::optional<Submission> submitted;  // none with the engine `none`
};
// Starts the parts that are not done, and a seal. Fails with exit code 2 if the job is running.
Result<Resumed> resume_array(const PlannedArray& planned, const std::string& program);

struct Canceled {
  bool was_sealed = false;
};
// Ends the job: cancels what Slurm runs, and waits up to 60 seconds for its end. With `discard`, also removes the job
// and, unless it is sealed, its incomplete outputs. Fails with exit code 2 if parts are running that the user started.
Result<Canceled> cancel_array(const PlannedArray& planned, bool discard);

}  // namespace ggufmill
