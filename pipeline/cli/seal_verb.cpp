// `ggufmill seal`: finishes a cluster job whose parts are done.

#include <fmt/format.h>

#include <charconv>

#include "pipeline/cli/cluster_jobs.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/running.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec seal_command() {
  CommandSpec spec;
  spec.usage = "ggufmill seal --plan DIR/plan.json [--wait 6h]";
  spec.description =
      "Finish the cluster job in DIR once all its parts are done: read its outputs from end to end, compare them with "
      "what the parts wrote, and give them their names. Damaged parts are reset, so that `ggufmill resume` runs them "
      "again. Exit code 75 means that parts are not done or were reset. Does nothing if the job is already sealed. For "
      "a matrix, seal every source that is done, then report the state of the others; the exit code is that of the "
      "first failure.";
  spec.examples =
      "  ggufmill seal --plan llama.job/plan.json\n"
      "  ggufmill seal --plan llama.job/plan.json --wait 6h";
  auto add = spec.options.add_options();
  add("plan", po::value<std::string>(), "plan of the job, or its folder");
  add("wait", po::value<std::string>(), "time to wait for unfinished parts: 90s, 30m, 6h");
  add("quiet,q", "print no summary");
  return spec;
}

Result<double> seconds_of(const std::string& text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(read.ptr, static_cast<std::size_t>(text.data() + text.size() - read.ptr));
  const double factor = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (read.ec == std::errc() && factor > 0 && number >= 0 && number <= 1e6) return number * factor;
  return usage_error(fmt::format("'{}' is not a valid duration", text), "give for example 90s, 30m, or 6h");
}

void print_sealed(const Plan& plan, const ClusterJob& job, const SealOutcome& outcome) {
  for (const StoredFile& file : stored_files(plan)) print_note("wrote " + file.path);
  print_note(fmt::format("{} sealed in {:.2f} s, {}", counted(job.parts(), "part"), outcome.seconds,
                         counted(outcome.edges, "edge")));
}

int print_results(const PlannedArray& planned, const SealedArray& sealed, bool quiet) {
  for (std::size_t i = 0; i < sealed.outcomes.size(); ++i) {
    if (!sealed.outcomes[i]) continue;
    const SealOutcome& outcome = sealed.outcomes[i].value();
    print_warnings(outcome.warnings);
    if (!outcome.was_sealed && !quiet) print_sealed(planned.plans[i], planned.array.jobs[i], outcome);
  }
  if (planned.array.is_matrix) return finish_batch(sealed.report, quiet);
  const Result<SealOutcome>& outcome = sealed.outcomes.front();
  if (!outcome) return fail(outcome.error());
  if (outcome.value().was_sealed && !quiet) print_note("the outputs were already sealed");
  return 0;
}

Result<int> run_seal(const po::variables_map& values) {
  SealOptions options;
  if (const auto wait = text_of(values, "wait")) {
    BOOST_OUTCOME_TRY(options.wait_seconds, seconds_of(*wait));
  }
  options.stop = catch_signals();
  BOOST_OUTCOME_TRY(const std::string folder, folder_of_plan(values));
  BOOST_OUTCOME_TRY(const OpenedPlans opened, enter_plans(folder));
  return print_results(opened.planned, seal_array(opened, options), values.count("quiet") > 0);
}

int seal_verb(const Parsed& parsed) {
  const auto code = run_seal(parsed.values);
  return code ? code.value() : fail(code.error());
}

}  // namespace

const Verb kSealVerb{"seal", OperationGroup::kCluster, "Finish a cluster job whose parts are done", seal_command,
                     seal_verb};

}  // namespace ggufmill
