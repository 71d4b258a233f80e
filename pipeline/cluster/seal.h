#pragma once
// The last step of a cluster job: gives the outputs their final names.

#include <atomic>
#include <string>
#include <vector>

#include "pipeline/api/context.h"
#include "pipeline/cluster/cluster_array.h"

namespace ggufmill {

struct SealOptions {
  double wait_seconds = 0;                  // how long to wait for unfinished parts or for another running seal
  const std::atomic<bool>* stop = nullptr;  // when set, the seal ends with kTransient
};

struct SealOutcome {
  bool was_sealed = false;
  std::size_t edges = 0;
  double seconds = 0;
  std::vector<std::string> warnings;
};

// Finishes a job when all its parts are done: copies the edges into place, reads all outputs back and compares them
// with the parts' checksums, and only then writes the headers and renames the files to their final names. Writes the
// manifests and the report if the plan requests them. A part whose bytes do not match its checksums is undone (exit
// code 75); it must be run again, and redoes only the damaged units. Also fails with exit code 75 if parts are missing
// or another seal is at work. May run on several machines at the same time, and again after being killed.
Result<SealOutcome> seal(const Context& context, const ClusterJob& job, const Plan& plan, const SealOptions& options);

// Seals each job of a matrix independently of the others. Jobs that are done are sealed first. A job with a permanently
// failed part is not waited for; its result is that part's error.
std::vector<Result<SealOutcome>> seal_all(const Context& context, const PlannedArray& planned,
                                          const SealOptions& options);

// Returns true if all outputs have their final names.
bool is_sealed(const ClusterJob& job, const Plan& plan);

}  // namespace ggufmill
