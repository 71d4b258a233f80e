#pragma once
// Measurements that parts take of tensors while they convert them, for the report written by the seal:
// parts/K.measured.json.

#include "pipeline/cluster/cluster_job.h"

namespace ggufmill {

// Writes the measurements of a run of the part: exact sums and the time, for each step whose units in the part were all
// processed by this run. Called before the part's marker is written. Writes nothing if the plan requests no report.
Status write_measured(const ClusterJob& job, std::size_t part, const Plan& plan, const RunReport& run);

// Combines the measurements of all parts into the results that a single run would have produced. A tensor counts as not
// measured (RunReport::steps_kept) if some of its rows were made by an interrupted attempt, as in a resumed run, or if
// a measurement file is missing or malformed.
void join_measured(const ClusterJob& job, const Plan& plan, RunReport& run);

}  // namespace ggufmill
