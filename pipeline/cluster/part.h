#pragma once
// One part of a cluster job, on whatever machine.

#include <atomic>
#include <functional>

#include "pipeline/api/ggufmill.h"
#include "pipeline/cluster/cluster_job.h"

namespace ggufmill {

struct PartOptions {
  std::size_t part = 0;
  const std::atomic<bool>* stop = nullptr;  // once it is set the part ends with kTransient, and a later one goes on
  std::function<void(const Progress&)> progress{};
  double beat_seconds = 10;  // between two signs of life
};

struct PartOutcome {
  bool was_done = false;  // by another attempt, or an earlier one
  RunReport run;
  std::size_t units = 0, units_kept = 0;
};

// Does the units of the part that are not done yet, and publishes its marker: after that it is done, whatever else
// runs. May run on several machines at once. Errors that may pass (EIO, ESTALE, ENOSPC) are tried again here, and then
// end it with kTransient, as a stop does; all others are for good. `plan`: of the job, with the limits of this machine.
Result<PartOutcome> run_part(const Context& context, const ClusterJob& job, const Plan& plan,
                             const PartOptions& options);

// What the batch system gives a part, in its environment: SLURM_CPUS_PER_TASK is its threads, and of
// SLURM_MEM_PER_NODE or SLURM_MEM_PER_CPU three quarters are its slabs', where the pipeline file does not say less and
// not more than 16 MiB a thread is of use. Without these the limits are those of a run on this machine. Changes what
// the file leaves open; exit code 2 for numbers that are none.
Status take_limits(Limits& limits, const std::function<const char*(const char*)>& variable);

// Whether trying again may help: I/O errors of a network or a disk that is full now.
bool may_pass(const Error& error);

}  // namespace ggufmill
