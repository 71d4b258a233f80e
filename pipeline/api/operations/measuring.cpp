#include "pipeline/api/operations/measuring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "pipeline/core/text.h"
#include "pipeline/io/machine.h"
#include "pipeline/plan/costs.h"

namespace ggufmill {
namespace {

std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s", std::ceil(seconds));
  return seconds < 3600 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

bool is_searched(const Step& step) {
  return std::ranges::any_of(step.encodings, [](const Encoding& each) { return each.encoder.searches(); });
}

// Notes what has to be measured, and an estimate of the time it takes; nothing if everything is known.
Status note_estimate(const Context& context, const Job& job, const MeasureOptions& options, const Call& call) {
  BOOST_OUTCOME_TRY(const Plan plan, context.plan_measurement(job, options));
  if (plan.steps.empty()) return ok();
  ImaginedMachine machine;
  machine.isa = context.kernels().isa();
  machine.threads = threads_for(job.limits.threads);
  const std::vector<double> costs = unit_costs(plan, machine);
  std::size_t types = 0;
  for (const Step& step : plan.steps) types = std::max(types, step.encodings.size());
  const std::string time = duration_text(std::accumulate(costs.begin(), costs.end(), 0.0));
  call.note({fmt::format(
      "{}: the target is not measured yet; measuring {} in up to {} each, {} to read, takes about {}, according to "
      "speeds measured for these kernels{}",
      job.file, counted(plan.steps.size(), "tensor"), counted(types, "type"), human_bytes(plan.bytes_read()), time,
      std::ranges::any_of(plan.steps, is_searched) ? "; encoders that search take several times as long" : "")});
  return ok();
}

}  // namespace

Result<Measurement> measure_with_notes(const Context& context, const Job& job, MeasuringOptions options,
                                       const Call& call) {
  options.stop = call.stop();
  options.warn = call.warn;
  if (call.step_progress)
    options.progress = [&](std::uint64_t done, std::uint64_t total) { call.step_progress("measuring", done, total); };
  if (call.shows_notes)
    options.begins = [&](const MeasureOptions& measured) { return note_estimate(context, job, measured, call); };
  options.note = [&](const std::string& note) { call.note({note}); };
  return measure_to(context, job, options);
}

Result<std::string> take_measurement(const Context& context, Job& job, IfUnmeasured if_unmeasured, const Call& call) {
  if (!needs_measurement(job)) return std::string();
  std::string note;
  // An error is that of planning or of measuring, which report it.
  if (const auto recalled = context.recall(job)) {
    const Recalled& found = recalled.value();
    if (found.measurement || if_unmeasured == IfUnmeasured::kLeave)  // otherwise, measuring repeats them
      call.warn_all(found.warnings);
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
  BOOST_OUTCOME_TRY(Measurement measured, measure_with_notes(context, job, {}, call));
  give_measurement(job, std::make_shared<const Measurement>(std::move(measured)));
  return note;
}

std::vector<Error> without_what_run_solves(std::vector<Error> problems, const Call& call, std::vector<Error>* solved) {
  const auto is_solved = [](const Error& problem) { return wants_measurement(problem) || wants_importance(problem); };
  std::set<std::string> notes;  // outputs may share one
  for (const Error& problem : problems)
    if (is_solved(problem)) notes.insert(fmt::format("{}: {}; {}", problem.where, problem.what, problem.help));
  for (const std::string& note : notes) call.note({note});
  if (solved) std::ranges::copy_if(problems, std::back_inserter(*solved), is_solved);
  std::erase_if(problems, is_solved);
  return problems;
}

}  // namespace ggufmill
