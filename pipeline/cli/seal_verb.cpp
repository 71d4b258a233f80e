// `ggufmill seal`: ends a cluster job whose parts are done.

#include <fmt/format.h>

#include <charconv>

#include "pipeline/cli/cluster_jobs.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/verb.h"
#include "pipeline/cluster/seal.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec command() {
  CommandSpec spec;
  spec.usage = "ggufmill seal --plan DIR/plan.json [--wait 6h]";
  spec.description =
      "Ends the cluster job in DIR once all its parts are done: reads its outputs from end to end, compares them with "
      "what the parts wrote, and gives them their names. What is damaged is undone, so that `ggufmill resume` does it "
      "again. Exit code 75: parts are not done, or were undone. Does nothing where all is done.";
  spec.examples =
      "  ggufmill seal --plan llama.job/plan.json\n"
      "  ggufmill seal --plan llama.job/plan.json --wait 6h";
  auto add = spec.options.add_options();
  add("plan", po::value<std::string>(), "the plan of the job, or its folder");
  add("wait", po::value<std::string>(), "so long for parts that are not done: 90s, 30m, 6h");
  add("quiet,q", "no summary");
  return spec;
}

Result<double> seconds_of(const std::string& text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(read.ptr, static_cast<std::size_t>(text.data() + text.size() - read.ptr));
  const double factor = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (read.ec == std::errc() && factor > 0 && number >= 0 && number <= 1e6) return number * factor;
  return usage_error(fmt::format("'{}' is not a time", text), "write 90s, 30m or 6h");
}

Status run(const po::variables_map& values) {
  SealOptions options;
  if (const auto wait = text_of(values, "wait")) {
    BOOST_OUTCOME_TRY(options.wait_seconds, seconds_of(*wait));
  }
  options.stop = catch_signals();
  BOOST_OUTCOME_TRY(const ClusterPlan job, open_cluster_job(values));
  BOOST_OUTCOME_TRY(const SealOutcome outcome, seal(job.context, job.job, job.plan, options));
  say_warnings(outcome.warnings);
  if (values.count("quiet")) return ok();
  if (outcome.was_sealed) {
    say_note("the outputs were sealed already");
    return ok();
  }
  for (const StoredFile& file : stored_files(job.plan)) say_note("wrote " + file.path);
  say_note(fmt::format("{} parts sealed in {:.2f} s, {} hems", job.job.parts(), outcome.seconds, outcome.hems));
  return ok();
}

int seal_verb(const Parsed& parsed) {
  const Status status = run(parsed.values);
  return status ? 0 : fail(status.error());
}

}  // namespace

const Verb kSealVerb{"seal", "end a cluster job whose parts are done", command, seal_verb};

}  // namespace ggufmill
