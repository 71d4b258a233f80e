#pragma once
// The properties of a job, and smaller jobs that violate them too.

#include <string>
#include <vector>

#include "tests/random/output_check.h"

namespace ggufmill::testing {

struct JobCheck {
  std::string fault;                 // empty: none
  std::vector<std::string> refused;  // why outputs were omitted: the library refuses to make them alone
  std::size_t outputs = 0;           // that were compared
  std::size_t tensors = 0;           // whose values were compared
};

// Makes each output alone, then all of them together, with the settings of the job. Each must be the same both times,
// and tensors whose values no stage changes must have those of the source. `folder` is for temporary files, and
// contains the outputs in the folder `out`.
JobCheck check_job(const Context& context, const RandomJob& job, const std::string& folder);

// Returns the job without the outputs, stages and settings that it does not need for a fault.
RandomJob smaller_job(const Context& context, RandomJob job, const std::string& folder);

}  // namespace ggufmill::testing
