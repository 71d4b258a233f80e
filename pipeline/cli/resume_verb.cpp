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
      "Goes on with a cluster job that nobody is at: hands the parts that are not done to its engine, and a new seal. "
      "A part goes on from what its last attempt has done.";
  spec.examples = "  ggufmill resume llama.job";
  spec.positional = "folder";
  return spec;
}

Error still_running(const ClusterArray& array) {
  return usage_error(
      "the job is under way",
      fmt::format("`ggufmill status {0}` says how far it is, `ggufmill cancel {0}` ends it", array.folder));
}

Status resume(const std::string& folder) {
  BOOST_OUTCOME_TRY(const OpenedPlans opened, open_plans(folder));
  const ClusterArray& array = opened.planned.array;
  const JobStatus status = JobWatch(opened.planned).look(true);
  say_warnings(status.warnings);
  if (status.state == JobStatus::State::kSealed) {
    say_note("the outputs are sealed already");
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

const Verb kResumeVerb{"resume", "go on with a cluster job that nobody is at", resume_command, resume_verb};

}  // namespace ggufmill
