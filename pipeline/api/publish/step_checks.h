#pragma once
// Checks of a job with steps before its first step.

#include <string>

#include "pipeline/api/batch.h"
#include "pipeline/api/publish/job_outputs.h"

namespace ggufmill {

// Adds the errors that check_steps() of job_steps.h returns. `source` is the path of the job's source, for messages; of
// `batch`, only overwrite is used.
void check_steps(const Context& context, const std::string& source, JobOutputs& outputs, const BatchOptions& batch,
                 Diagnostics& errors);

}  // namespace ggufmill
