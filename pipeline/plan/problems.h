#pragma once
// What a plan is refused for, whoever runs it.

#include <span>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/output_target.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// What no state of disks or memory would mend: problems of the outputs, limits out of range, and outputs, reports and
// traces that are one file, or one that is read: by the plan, or as one of `also_read` (modules). All of it is added to
// `errors`, each thing once; exit code 2.
void find_problems(const Plan& plan, std::span<const std::string> also_read, Diagnostics& errors);
// The same, and what is there now: see check_written().
void find_problems(const Plan& plan, std::span<const std::string> also_read, bool overwrite, Diagnostics& errors);

// Everything that a run of the plan writes: outputs, reports, the trace.
std::vector<WrittenPath> written_paths(const Plan& plan);

}  // namespace ggufmill
