#pragma once
// The end of a cluster job: its outputs get their names.

#include <atomic>
#include <string>
#include <vector>

#include "pipeline/api/ggufmill.h"
#include "pipeline/cluster/cluster_array.h"

namespace ggufmill {

struct SealOptions {
  double wait_seconds = 0;                  // for parts that are not done yet, and for another seal that is at work
  const std::atomic<bool>* stop = nullptr;  // once it is set the seal ends with kTransient
};

struct SealOutcome {
  bool was_sealed = false;
  std::size_t hems = 0;
  double seconds = 0;
  std::vector<std::string> warnings;
};

// Once all parts are done: brings the hems to their places, reads all outputs again and compares them with what the
// parts say, and only then writes the headers and gives the files their names. A part whose bytes are not what it says
// is undone (exit code 75): it is to be run again, and does what is damaged. Manifests and the report, where the plan
// asks for them, are written here. Exit code 75 also where parts lack or another seal is at work. May run on several
// machines at once, and again when it was killed.
Result<SealOutcome> seal(const Context& context, const ClusterJob& job, const Plan& plan, const SealOptions& options);

// The same of each job of a matrix, whatever becomes of the others. A job of which a part has failed for good is not
// waited for, and has that part's error. Those that are done are sealed first.
std::vector<Result<SealOutcome>> seal_all(const Context& context, const PlannedArray& planned,
                                          const SealOptions& options);

// Whether all outputs have their names.
bool is_sealed(const ClusterJob& job, const Plan& plan);

}  // namespace ggufmill
