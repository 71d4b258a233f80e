// `ggufmill resume`: resumes a cluster job.

#include "pipeline/cli/cluster_jobs.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/verb.h"

namespace ggufmill {
namespace {

CommandSpec resume_command() {
  CommandSpec spec;
  spec.usage = "ggufmill resume FOLDER";
  spec.description =
      "Resume a cluster job that is not running: submit its unfinished parts, and a new seal, to its engine. Each part "
      "continues from its last attempt.";
  spec.examples = "  ggufmill resume llama.job";
  spec.positional = "folder";
  return spec;
}

Status resume(const std::string& folder) {
  BOOST_OUTCOME_TRY(const OpenedPlans opened, enter_plans(folder));
  BOOST_OUTCOME_TRY(const Resumed resumed, resume_array(opened.planned, this_program()));
  print_warnings(resumed.warnings);
  if (resumed.was_sealed)
    print_note("the outputs are already sealed");
  else
    print_started(opened.planned.array, resumed.parts, resumed.submitted);
  return ok();
}

int resume_verb(const Parsed& parsed) {
  const Status status = resume(parsed.values["folder"].as<std::string>());
  return status ? 0 : fail(status.error());
}

}  // namespace

const Verb kResumeVerb{"resume", OperationGroup::kCluster, "Resume a cluster job that stopped", resume_command,
                       resume_verb};

}  // namespace ggufmill
