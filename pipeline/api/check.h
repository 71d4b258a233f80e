#pragma once
// What stands in the way of a run. All errors of a kind are added, not the first alone.

#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/job.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// The first type whose modules here are not those of a plan or measurement; empty where there is none.
std::string changed_module(const std::vector<TypeModule>& modules, const Kernels& kernels);
// Exit code 2 for a measurement of the job that was made with another module of a candidate type.
Status check_measured(const Job& job, const Kernels& kernels);

// Notes when the inode of each source last changed.
void look_at_sources(Plan& plan);

// Whatever the disks and the memory: see Context::problems().
void check_plan(const Plan& plan, const Kernels& kernels, Diagnostics& errors);
// The same, and here and now: outputs that are there without `overwrite`, folders, space, memory.
void check_run(const Plan& plan, const Kernels& kernels, bool overwrite, Diagnostics& errors);

}  // namespace ggufmill
