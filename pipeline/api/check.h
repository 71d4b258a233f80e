#pragma once
// What stands in the way of a run. All errors of a kind are added, not the first alone.

#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// Whatever the disks and the memory: see Context::problems(). Gives the paths that are refused.
std::vector<std::string> check_plan(const Plan& plan, const Kernels& kernels, Diagnostics& errors);
// The same, and here and now: outputs that are there without `overwrite`, folders, space, memory.
void check_run(const Plan& plan, const Kernels& kernels, bool overwrite, Diagnostics& errors);

}  // namespace ggufmill
