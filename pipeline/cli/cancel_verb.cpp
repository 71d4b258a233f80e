// `ggufmill cancel`: cancels a cluster job that is not finished.

#include <fmt/format.h>

#include "pipeline/cli/cluster_jobs.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/verb.h"

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

Status cancel(const std::string& folder, bool discard) {
  BOOST_OUTCOME_TRY(const OpenedPlans opened, enter_plans(folder));
  BOOST_OUTCOME_TRY(const Canceled canceled, cancel_array(opened.planned, discard));
  if (discard)
    print_note(canceled.was_sealed ? "removed the job; its outputs are kept"
                                   : "removed the job and its incomplete outputs");
  else if (canceled.was_sealed)
    print_note("the outputs are already sealed");
  else
    print_note(fmt::format("canceled; finished work is kept: `ggufmill resume {}` continues the job",
                           opened.planned.array.folder));
  return ok();
}

int cancel_verb(const Parsed& parsed) {
  const Status status = cancel(parsed.values["folder"].as<std::string>(), parsed.values.count("discard") > 0);
  return status ? 0 : fail(status.error());
}

}  // namespace

const Verb kCancelVerb{"cancel", OperationGroup::kCluster, "Cancel a cluster job", cancel_command, cancel_verb};

}  // namespace ggufmill
