// `ggufmill cancel`: cancels a cluster job that is not finished.

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "pipeline/cli/cluster_jobs.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/verb.h"
#include "pipeline/cluster/part_store.h"
#include "pipeline/cluster/seal.h"
#include "pipeline/cluster/status.h"
#include "pipeline/cluster/submit.h"

namespace ggufmill {
namespace {

CommandSpec cancel_command() {
  CommandSpec spec;
  spec.usage = "ggufmill cancel FOLDER [--discard]";
  spec.description =
      "Cancel a cluster job. Finished work is kept, and `ggufmill resume` continues from it; with --discard, the job "
      "and its incomplete outputs are removed.";
  spec.examples =
      "  ggufmill cancel llama.job\n"
      "  ggufmill cancel llama.job --discard";
  spec.positional = "folder";
  spec.options.add_options()("discard", "remove the job and its incomplete outputs");
  return spec;
}

// Waits up to 60 seconds for Slurm to end the canceled jobs.
Status wait_for_end(const ClusterArray& array) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    BOOST_OUTCOME_TRY(const SlurmView view, look_at_slurm(array));
    if (!view.is_active()) return ok();
    if (std::chrono::steady_clock::now() > end)
      return Error{ExitCode::kTransient, "", "Slurm has not stopped the job yet", "", "try again, or check `squeue`"};
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

Status cancel(const std::string& folder, bool discard) {
  BOOST_OUTCOME_TRY(const OpenedPlans opened, open_plans(folder));
  const ClusterArray& array = opened.planned.array;
  std::vector<std::size_t> unsealed;  // indices of the jobs that are not sealed
  for (std::size_t i = 0; i < array.jobs.size(); ++i)
    if (!is_sealed(array.jobs[i], opened.planned.plans[i])) unsealed.push_back(i);
  const bool sealed = unsealed.empty();
  if (array.jobs.front().options.engine == ClusterOptions::Engine::kSlurm && !sealed) {
    BOOST_OUTCOME_TRY(cancel_in_slurm(array));
    BOOST_OUTCOME_TRY(wait_for_end(array));
  } else if (!sealed && JobWatch(opened.planned).look(true).state == JobStatus::State::kRunning) {
    return usage_error("parts that ggufmill did not start are running", "stop them where they were started");
  }
  if (!discard) {
    print_note(
        sealed ? "the outputs are already sealed"
               : fmt::format("canceled; finished work is kept: `ggufmill resume {}` continues the job", array.folder));
    return ok();
  }
  for (const std::size_t i : unsealed) {
    BOOST_OUTCOME_TRY(remove_outputs(array.jobs[i], opened.planned.plans[i]));
  }
  BOOST_OUTCOME_TRY(remove_array(array));
  print_note(sealed ? "removed the job; its outputs are kept" : "removed the job and its incomplete outputs");
  return ok();
}

int cancel_verb(const Parsed& parsed) {
  const Status status = cancel(parsed.values["folder"].as<std::string>(), parsed.values.count("discard") > 0);
  return status ? 0 : fail(status.error());
}

}  // namespace

const Verb kCancelVerb{"cancel", VerbGroup::kCluster, "Cancel a cluster job", cancel_command, cancel_verb};

}  // namespace ggufmill
