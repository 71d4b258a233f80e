#pragma once
// What parts measured of tensors while they made them, for the report that the seal writes: parts/K.measured.json.

#include "pipeline/cluster/cluster_job.h"

namespace ggufmill {

// Of a run of the part: of each step that was all its own, exact sums and the time. Before its marker. Nothing where
// the plan asks for no report.
Status write_measured(const ClusterJob& job, std::size_t part, const Plan& plan, const RunReport& run);

// Puts together what all parts measured, as one run would have: the same figures. A tensor of which rows were made by
// an attempt that was ended early is one that is not measured (RunReport::steps_kept), as it is of a run that was gone
// on with; likewise where a file is not there or not sound.
void join_measured(const ClusterJob& job, const Plan& plan, RunReport& run);

}  // namespace ggufmill
