#include "pipeline/cli/running.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/profiling.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/reporting.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/text_output.h"
#include "pipeline/graph/engine.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

Result<RunOptions> run_options(const po::variables_map& values) {
  RunOptions options;
  const auto engine = values["engine"].as<std::string>();
  const auto io = values["io-engine"].as<std::string>();
  if (engine != "graph" && engine != "simple")
    return usage_error(fmt::format("unknown engine '{}'", engine), "--engine is graph or simple");
  if (io != "auto" && io != "io_uring" && io != "threads")
    return usage_error(fmt::format("unknown I/O engine '{}'", io), "--io-engine is auto, io_uring or threads");
  options.engine = engine == "simple" ? EngineKind::kSimple : EngineKind::kGraph;
  options.io = io == "auto" ? IoKind::kAuto : io == "io_uring" ? IoKind::kUring : IoKind::kThreads;
  return options;
}

std::string summary(const PlannedOutput& output, const OutputFile& file) {
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  for (const Placement& placement : file.tensors) {
    bytes += placement.bytes;
    elements += output.model.tensors[placement.tensor].shape.elements();
  }
  const double bits = elements ? 8.0 * static_cast<double>(bytes) / static_cast<double>(elements) : 0;
  return fmt::format("{}  {}, {} tensors, {:.2f} bits per weight", file.path, human_bytes(file.bytes),
                     file.tensors.size(), bits);
}

void say_summary(const Plan& plan, const RunReport& report) {
  const double megabytes = static_cast<double>(report.bytes_read + report.bytes_written) / 1e6;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) say_note("wrote " + summary(output, file));
  say_note(fmt::format("read {} once, wrote {} in {:.2f} s ({:.0f} MB/s), {} of slabs at most, {} I/O by {}",
                       human_bytes(report.bytes_read), human_bytes(report.bytes_written), report.seconds,
                       report.seconds > 0 ? megabytes / report.seconds : 0, human_bytes(report.peak_budget),
                       io_mode_names()[static_cast<std::size_t>(report.io_mode)], report.io));
}

// An output for each of many recipes, and shards, are more files than a process may have open by default.
void allow_many_files() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// The threads of the run, which start later, do as this one does.
void give_way(unsigned nice) {
  errno = 0;
  if (nice != 0 && ::nice(static_cast<int>(nice)) == -1 && errno != 0) say_warning("the niceness stays as it is");
}

// Writes the report, where one is wanted. The outputs are there by now, whatever becomes of it.
int tell(const Planned& planned, const RunReport& run, bool overwrite, bool quiet) {
  const Plan& plan = planned.plan;
  if (!plan.is_reported()) return 0;
  const Status written = write_report(report_of(planned, run), plan.report, plan.source.files, overwrite);
  if (!written) return fail(written.error());
  for (const std::string& path : {plan.report.json, plan.report.html})
    if (!path.empty() && !quiet) say_note("wrote " + path + "  the report");
  return 0;
}

}  // namespace

void add_run_options(po::options_description& options) {
  auto add = options.add_options();
  add("engine", po::value<std::string>()->default_value("graph"), "graph, or simple: one slab after the other");
  add("io-engine", po::value<std::string>()->default_value("auto"), "auto, io_uring or threads");
  add("profile", po::value<std::string>(), "FILE.json: say where the time went, and write a trace for Perfetto");
  add("quiet,q", "no progress and no summary");
  add_report_options(options);
}

int execute(const Planned& planned, const po::variables_map& values, bool overwrite) {
  auto options = run_options(values);
  if (!options) return fail(options.error());
  Diagnostics errors;
  preflight(planned, overwrite, errors);
  const auto trace = value_or<std::string>(values, "profile", {});
  if (!trace.empty())
    if (const Status there = check_text(trace, planned.plan.source.files, overwrite); !there) errors.add(there.error());
  if (!errors.empty()) return fail(errors);
  allow_many_files();
  give_way(planned.plan.limits.nice);
  const bool quiet = values.count("quiet") > 0;
  ProgressMeter meter(quiet);
  options.value().overwrite = overwrite;
  options.value().stop = catch_signals();
  options.value().progress = [&](const Progress& now) { meter.show(planned.plan, now); };
  std::optional<Profile> profile;
  if (!trace.empty()) options.value().profile = &profile.emplace();
  const auto report = run_plan(planned.plan, *planned.kernels, options.value());
  meter.finish();
  if (!report) {
    const int code = fail(report.error());
    return signal_exit_code().value_or(code);
  }
  if (!quiet) say_summary(planned.plan, report.value());
  if (profile)
    if (const Status told = tell_profile(*profile, trace, planned.plan, overwrite, quiet); !told)
      return fail(told.error());
  return tell(planned, report.value(), overwrite, quiet);
}

}  // namespace ggufmill
