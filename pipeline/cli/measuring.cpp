#include "pipeline/cli/measuring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cluster/cut.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/machine.h"

namespace ggufmill {

Result<Measurement> measure_showing_progress(const Context& context, const Job& job, const std::string& path,
                                             MeasuringOptions options, bool quiet) {
  ProgressMeter meter(quiet);
  options.stop = catch_signals();
  options.warn = print_warning;
  options.progress = [&](std::uint64_t done, std::uint64_t total) { meter.show("measuring", done, total); };
  options.note = [&](const std::string& note) {
    meter.finish();
    if (!quiet) print_note(note);
  };
  auto measured = measure_to(context, job, path, options);
  meter.finish();
  return measured;
}

namespace {

std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s", std::ceil(seconds));
  return seconds < 3600 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

Status print_estimate(const Context& context, const Job& job) {
  BOOST_OUTCOME_TRY(const Plan plan, context.plan_measurement(job));
  ImaginedMachine machine;
  machine.isa = context.kernels().isa();
  machine.threads = threads_for(job.limits.threads);
  const std::vector<double> costs = unit_costs(plan, machine);
  std::size_t types = 0;
  for (const Step& step : plan.steps) types = std::max(types, step.encodings.size());
  print_note(
      fmt::format("{}: the target is not measured yet; measuring it first: {} tensors as up to {} types each, {} to "
                  "read, takes about {}",
                  job.file, plan.steps.size(), types, human_bytes(plan.bytes_read()),
                  duration_text(std::accumulate(costs.begin(), costs.end(), 0.0))));
  return ok();
}

}  // namespace

Status take_measurement(const Context& context, Job& job, const std::string& path, IfUnmeasured if_unmeasured,
                        bool quiet) {
  if (!needs_measurement(job)) return ok();
  const bool measures = if_unmeasured != IfUnmeasured::kLeave;
  bool is_old_measurement = false;  // a measurement that `run` made for itself and may replace
  if (is_file(path)) {
    auto read = read_measurement(path);
    if (!read && !measures) return read.error();
    if (read) {
      Job with = job;
      give_measurement(with, std::make_shared<const Measurement>(std::move(read).value()));
      if (const auto plan = context.plan(with); plan || !wants_measurement(plan.error())) {
        job = std::move(with);
        job.inputs.push_back(path);
        return ok();
      }
    }
    is_old_measurement = is_measurement(path);
  }
  if (!measures) return ok();
  BOOST_OUTCOME_TRY(check_unmeasured(context, job, if_unmeasured == IfUnmeasured::kMeasure));
  if (!quiet) {
    BOOST_OUTCOME_TRY(print_estimate(context, job));
  }
  BOOST_OUTCOME_TRY(Measurement measured,
                    measure_showing_progress(context, job, path, {.overwrite = is_old_measurement}, quiet));
  give_measurement(job, std::make_shared<const Measurement>(std::move(measured)));
  return ok();
}

bool is_measured(const PlannedOutput& output) { return std::ranges::none_of(output.problems, wants_measurement); }

void print_unmeasured(std::vector<Error>& problems) {
  for (const Error& problem : problems)
    if (wants_measurement(problem)) print_note(fmt::format("{}: {}; {}", problem.where, problem.what, problem.help));
  std::erase_if(problems, wants_measurement);
}

}  // namespace ggufmill
