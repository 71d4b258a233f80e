#pragma once
// Checks that must pass before a run. All errors of a kind are reported, not just the first.

#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/job.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// Fails with exit code 2 if a measurement used by the job was made with a different module for one of its candidate
// types.
Status check_measured(const Job& job, const Kernels& kernels);

// Records when the inode of each source last changed.
void look_at_sources(Plan& plan);

// Checks everything that does not depend on the state of disks and memory: see Context::problems().
void check_plan(const Plan& plan, const Kernels& kernels, Diagnostics& errors);
// Like check_plan(), and also checks the current state of the machine: existing outputs if `overwrite` is false,
// folders, disk space, memory.
void check_run(const Plan& plan, const Kernels& kernels, bool overwrite, Diagnostics& errors);

}  // namespace ggufmill
