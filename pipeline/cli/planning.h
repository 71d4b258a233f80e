#pragma once
// What run, check and plan share: the options that say which job, and from the arguments to a Plan.

#include <boost/program_options.hpp>
#include <memory>
#include <optional>

#include "pipeline/config/job.h"
#include "pipeline/core/error.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// --kernel-dir and --isa.
void add_kernel_options(boost::program_options::options_description& options);
// --set, --param, --kernel-dir and --isa.
void add_job_options(boost::program_options::options_description& options);

struct Planned {
  std::shared_ptr<const Kernels> kernels;  // first: loading them may add types that the files name
  Job job;                                 // outlives the plan's stages
  Plan plan;
};

// The same for a pipeline file's text; `name` stands for its path in messages.
std::optional<Planned> plan_text(const std::string& text, const std::string& name,
                                 const boost::program_options::variables_map& values, Diagnostics& errors);

// Loads kernels, job and plan; says warnings. Errors are added.
std::optional<Planned> plan_from(const boost::program_options::variables_map& values, Diagnostics& errors);

// What the stages found that must be solved before a run: importance that lacks, rows that nothing fits.
void add_problems(const Plan& plan, Diagnostics& errors);

// What can be known to go wrong before the first byte: those problems, types without kernels, outputs that exist, space
// on their disks, memory.
void preflight(const Planned& planned, bool overwrite, Diagnostics& errors);

// Elements of all tensors.
std::uint64_t weights_of(const Model& model);

}  // namespace ggufmill
