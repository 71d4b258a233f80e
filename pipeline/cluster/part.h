#pragma once
// Runs one part of a cluster job on the machine at hand.

#include <atomic>
#include <functional>

#include "pipeline/api/context.h"
#include "pipeline/cluster/cluster_job.h"

namespace ggufmill {

struct PartOptions {
  std::size_t part = 0;
  const std::atomic<bool>* stop = nullptr;  // when set, the part ends with kTransient; a later attempt resumes it
  std::function<void(const Progress&)> progress{};
  double heartbeat_seconds = 10;  // interval between heartbeats
};

struct PartOutcome {
  bool was_done = false;  // finished by another attempt, earlier or concurrent
  RunReport run;
  std::size_t units = 0, units_kept = 0;
};

// Processes the units of the part that are not done yet, then publishes the part's marker. From then on the part is
// done, regardless of other attempts. Several machines may run the same part at the same time. Transient errors (see
// may_pass()) are retried here; if they persist, the part fails with kTransient, as after a stop. All other errors are
// permanent. `plan` is the job's plan with the limits of this machine.
Result<PartOutcome> run_part(const Context& context, const ClusterJob& job, const Plan& plan,
                             const PartOptions& options);

// Sets the limits that the pipeline file leaves unset from the batch system's environment variables.
// SLURM_CPUS_PER_TASK is the number of threads. The memory for slabs is three quarters of SLURM_MEM_PER_NODE, or of
// SLURM_MEM_PER_CPU times the CPUs (both in MiB), but no more than the default or 16 MiB per thread, whichever is
// larger, because more memory does not help. Without these variables the limits are those of an ordinary run on this
// machine. Fails with exit code 2 if a variable is not a number.
Status take_limits(Limits& limits, const std::function<const char*(const char*)>& variable);

// Returns true if a retry may succeed: kTransient, and I/O errors of a network or of a disk that is currently full
// (EIO, ESTALE, ENOSPC, EDQUOT, ETIMEDOUT, EAGAIN, ENOMEM).
bool may_pass(const Error& error);

}  // namespace ggufmill
