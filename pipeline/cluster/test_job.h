#pragma once
// Jobs for the unit tests of this folder. No job has parts that were run.

#include <string>

#include "pipeline/cluster/cluster_array.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/plan/written.h"
#include "tests/support/plan_maker.h"

namespace ggufmill::testing {

// Returns a job of four parts in a folder, which need not exist.
inline ClusterJob job_in(const std::string& folder) {
  ClusterJob job;
  job.folder = job.array_folder = folder;
  job.working_folder = "/shared/work here";
  job.name = "Llama 3_8B";
  job.identity = "0123456789abcdef0123456789abcdef";
  job.id = "abc123";
  job.cuts = {0, 2, 4, 6, 8};
  job.costs = {1, 1, 1, 1};
  return job;
}

// Returns a plan of `units` units, one for each tensor, with one output in `folder`.
inline Plan plan_of_units(std::size_t units, const std::string& folder = "folder", std::uint64_t rows = 4) {
  std::vector<TensorRecipe> tensors;
  for (std::size_t i = 0; i < units; ++i)
    tensors.push_back({"t" + std::to_string(i), shape_of({32, rows}), "F32", {"F16"}, false});
  return plan_of(tensors, folder);
}

// Returns the job that runs the plan in two parts, in the existing folder `folder`; writes nothing but `folder`/parts.
inline ClusterJob job_of(const Plan& plan, const std::string& folder) {
  ClusterJob job = job_in(folder);
  job.identity = identity_of(plan);
  job.cuts = {0, plan.units.size() / 2, plan.units.size()};
  job.costs = {1, 2};
  fs::create_directories(job.file("parts"));
  return job;
}

}  // namespace ggufmill::testing
