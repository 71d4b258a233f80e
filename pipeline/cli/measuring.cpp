#include "pipeline/cli/measuring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cluster/cut.h"
#include "pipeline/core/text.h"
#include "pipeline/io/machine.h"

namespace ggufmill {

namespace {

std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s", std::ceil(seconds));
  return seconds < 3600 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

bool is_searched(const Step& step) {
  return std::ranges::any_of(step.encodings, [](const Encoding& each) { return each.encoder.searches(); });
}

// Prints what has to be measured, and an estimate of the time it takes; nothing if everything is known.
Status print_estimate(const Context& context, const Job& job, const MeasureOptions& options) {
  BOOST_OUTCOME_TRY(const Plan plan, context.plan_measurement(job, options));
  if (plan.steps.empty()) return ok();
  ImaginedMachine machine;
  machine.isa = context.kernels().isa();
  machine.threads = threads_for(job.limits.threads);
  const std::vector<double> costs = unit_costs(plan, machine);
  std::size_t types = 0;
  for (const Step& step : plan.steps) types = std::max(types, step.encodings.size());
  const std::string time = duration_text(std::accumulate(costs.begin(), costs.end(), 0.0));
  print_note(fmt::format(
      "{}: the target is not measured yet; measuring {} in up to {} each, {} to read, takes about {}, according to "
      "speeds measured for these kernels{}",
      job.file, counted(plan.steps.size(), "tensor"), counted(types, "type"), human_bytes(plan.bytes_read()), time,
      std::ranges::any_of(plan.steps, is_searched) ? "; encoders that search take several times as long" : ""));
  return ok();
}

}  // namespace

Result<Measurement> measure_showing_progress(const Context& context, const Job& job, MeasuringOptions options,
                                             bool quiet) {
  ProgressMeter meter(quiet);
  options.stop = catch_signals();
  options.warn = print_warning;
  options.progress = [&](std::uint64_t done, std::uint64_t total) { meter.show("measuring", done, total); };
  if (!quiet) options.begins = [&](const MeasureOptions& measured) { return print_estimate(context, job, measured); };
  options.note = [&](const std::string& note) {
    meter.finish();
    if (!quiet) print_note(note);
  };
  auto measured = measure_to(context, job, options);
  meter.finish();
  return measured;
}

Result<std::string> take_measurement(const Context& context, Job& job, IfUnmeasured if_unmeasured, bool quiet) {
  if (!needs_measurement(job)) return std::string();
  std::string note;
  // An error is that of planning or of measuring, which report it.
  if (const auto recalled = context.recall(job)) {
    const Recalled& found = recalled.value();
    if (found.measurement || if_unmeasured == IfUnmeasured::kLeave)  // otherwise, measuring repeats them
      for (const std::string& warning : found.warnings) print_warning(warning);
    if (found.known != 0)
      note = fmt::format("{}: the cache contains the measurements of {}{}", job.file,
                         found.known == found.tensors ? "all " : fmt::format("{} of ", found.known),
                         counted(found.tensors, "tensor"));
    if (found.measurement) {
      give_measurement(job, found.measurement);
      return note;
    }
  }
  if (if_unmeasured == IfUnmeasured::kLeave) return note;
  BOOST_OUTCOME_TRY(check_unmeasured(context, job, if_unmeasured == IfUnmeasured::kMeasure));
  BOOST_OUTCOME_TRY(Measurement measured, measure_showing_progress(context, job, {}, quiet));
  give_measurement(job, std::make_shared<const Measurement>(std::move(measured)));
  return note;
}

void print_what_run_solves(std::vector<Error>& problems) {
  const auto is_solved = [](const Error& problem) { return wants_measurement(problem) || wants_importance(problem); };
  std::set<std::string> notes;  // outputs may share one
  for (const Error& problem : problems)
    if (is_solved(problem)) notes.insert(fmt::format("{}: {}; {}", problem.where, problem.what, problem.help));
  for (const std::string& note : notes) print_note(note);
  std::erase_if(problems, is_solved);
}

}  // namespace ggufmill
