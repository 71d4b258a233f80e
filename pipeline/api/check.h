#pragma once
// What stands in the way of a run. All errors of a kind are added, not the first alone.

#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// Whatever the disks and the memory: see Context::problems().
void find_problems(const Plan& plan, const Kernels& kernels, Diagnostics& errors);
// Here and now: outputs that are there without `overwrite`, folders, space, memory.
void check_here(const Plan& plan, bool overwrite, Diagnostics& errors);

// Every file that a run of the plan reads, or that had a part in making it: none of them is ever written.
std::vector<std::string> module_paths(const Kernels& kernels);
std::vector<std::string> inputs_of(const Plan& plan, const Kernels& kernels);

}  // namespace ggufmill
