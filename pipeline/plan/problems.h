#pragma once
// The errors for which a plan is refused, whoever runs it.

#include <span>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/output_target.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// Adds the errors that no change to disks or memory would fix: problems of the outputs, limits out of range, and
// outputs, reports and traces that are the same file as each other or as a file that the plan reads or that is in
// `also_read` (modules). Each error is added once, with exit code 2.
void find_problems(const Plan& plan, std::span<const std::string> also_read, Diagnostics& errors);
// The same, and checks the files that exist now: see check_written(). Those in `own` may be replaced in any case.
void find_problems(const Plan& plan, std::span<const std::string> also_read, bool overwrite,
                   std::span<const std::string> own, Diagnostics& errors);

// Returns all files that a run of the plan writes: outputs, manifests, checksum lists, reports and the trace.
std::vector<WrittenPath> written_paths(const Plan& plan);

}  // namespace ggufmill
