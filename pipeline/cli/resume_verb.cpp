// `ggufmill resume`: resumes a cluster job.

#include <fmt/format.h>

#include "pipeline/cli/cluster_jobs.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/verb.h"
#include "pipeline/cluster/status.h"
#include "pipeline/cluster/submit.h"

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

Error still_running(const ClusterArray& array) {
  return usage_error(
      "the job is running",
      fmt::format("`ggufmill status {0}` shows its progress, `ggufmill cancel {0}` cancels it", array.folder));
}

Status resume(const std::string& folder) {
  BOOST_OUTCOME_TRY(const OpenedPlans opened, open_plans(folder));
  const ClusterArray& array = opened.planned.array;
  const JobStatus status = JobWatch(opened.planned).look(true);
  print_warnings(status.warnings);
  if (status.state == JobStatus::State::kSealed) {
    print_note("the outputs are already sealed");
    return ok();
  }
  if (status.state == JobStatus::State::kRunning) return still_running(array);
  BOOST_OUTCOME_TRY(const std::vector<std::size_t> missing, prepare_resume(opened.planned));
  return start_parts(array, missing);
}

int resume_verb(const Parsed& parsed) {
  const Status status = resume(parsed.values["folder"].as<std::string>());
  return status ? 0 : fail(status.error());
}

}  // namespace

const Verb kResumeVerb{"resume", VerbGroup::kCluster, "Resume a cluster job that stopped", resume_command, resume_verb};

}  // namespace ggufmill
