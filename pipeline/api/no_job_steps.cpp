// Jobs with steps, in a build that omits them: pipeline files have no section for them.
#include "pipeline/api/job_steps.h"
#include "pipeline/core/wings.h"
#include "stages/importance/computed_importance.h"

namespace ggufmill {

Status check_steps_are_built(const Job& job) {
  for (const JobOutput& output : job.outputs)
    if (const ImportanceComputation* computation = computation_of(output))
      return error_at(computation->origin, "this build cannot compute an importance", omitted_wing_help("compute"));
  return ok();
}

bool has_steps(const Job&) { return false; }

Result<std::vector<JobStep>> steps_of(const Context&, const BatchJob&, const StepOptions&) {
  return std::vector<JobStep>();
}

std::set<std::string> sent_files(const Context&, const BatchJob&) { return {}; }

std::vector<Error> check_steps(const Context&, const BatchJob&, const StepOptions&) { return {}; }

std::vector<std::string> step_warnings(const Job&, const Plan&) { return {}; }

Result<StepReport> run_steps(const Context&, const BatchJob&, const StepOptions&) { return StepReport(); }

Job with_known_importance(const Context&, const Job& job) { return job; }

}  // namespace ggufmill
