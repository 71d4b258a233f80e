// `ggufmill resume`: goes on with a cluster job.

#include <fmt/format.h>

#include "pipeline/cli/cluster_jobs.h"
#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cluster/status.h"
#include "pipeline/cluster/submit.h"

namespace ggufmill {
namespace {

CommandSpec command() {
  CommandSpec spec;
  spec.usage = "ggufmill resume FOLDER";
  spec.description =
      "Goes on with a cluster job that nobody is at: hands the parts that are not done to its engine, and a new seal.\n"
      "A part goes on from what its last attempt has done.";
  spec.examples = "  ggufmill resume llama.job";
  spec.positional = "folder";
  return spec;
}

Error still_running(const ClusterJob& job) {
  return usage_error(
      "the job is under way",
      fmt::format("`ggufmill status {0}` says how far it is, `ggufmill cancel {0}` ends it", job.folder));
}

Status resume(const std::string& folder) {
  BOOST_OUTCOME_TRY(const ClusterPlan opened, open_cluster_job(folder));
  const JobStatus status = JobWatch(opened.job, opened.plan).look(true);
  say_warnings(status.warnings);
  if (status.state == JobStatus::State::kSealed) {
    say_note("the outputs are sealed already");
    return ok();
  }
  if (status.state == JobStatus::State::kRunning) return still_running(opened.job);
  BOOST_OUTCOME_TRY(const std::vector<std::size_t> missing, prepare_resume(opened.job, opened.plan));
  return start_parts(opened.job, missing);
}

}  // namespace

int resume_verb(const Arguments& arguments) {
  const Parsed parsed = parse_command(command(), arguments);
  if (parsed.exit_code) return *parsed.exit_code;
  const Status status = resume(parsed.values["folder"].as<std::string>());
  return status ? 0 : fail(status.error());
}

}  // namespace ggufmill
