// Runs and their reports.

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <optional>

#include "pipeline/api/check.h"
#include "pipeline/api/ggufmill.h"
#include "pipeline/api/reports.h"
#include "pipeline/graph/profile.h"

namespace ggufmill {
namespace {

// An output for each of many recipes, and shards, are more files than a process may have open by default.
void allow_files(const Plan& plan) {
  constexpr rlim_t kOthers = 256;  // the program's own, and what the run needs beside its files
  rlim_t needed = kOthers + plan.sources.size();
  for (const PlannedOutput& output : plan.outputs) needed += 2 * output.files.size();  // each with its folder
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);  // where it fails, a file that cannot be opened says so
}

// What `work` gives, done by a thread of its own that gives way to others as much as `nice` says, with the threads that
// it starts: the caller's thread stays as it is.
Result<RunReport> nicely(unsigned nice, const std::function<Result<RunReport>()>& work) {
  if (nice == 0) return work();
  const auto nicer_work = [&] {
    errno = 0;
    const bool is_nicer = ::nice(static_cast<int>(nice)) != -1 || errno == 0;
    Result<RunReport> result = work();
    if (!is_nicer && result) result.value().warnings.emplace_back("the niceness stays as it is");
    return result;
  };
  try {
    return std::async(std::launch::async, nicer_work).get();
  } catch (...) {
    return error_of_exception();
  }
}

// The outputs are there by now, whatever becomes of what is told about them.
Error after_outputs(Error error) {
  if (!error.detail.empty()) error.detail += '\n';
  error.detail += "the outputs are written";
  return error;
}

}  // namespace

Report Context::report_of(const Plan& plan, const RunReport& run) const {
  return ggufmill::report_of(plan, run, kernels().isa());
}

Result<RunReport> Context::run(const Plan& plan, const RunOptions& options) const {
  Diagnostics errors;
  check_run(plan, kernels(), options.overwrite, errors);
  if (!errors.empty()) return errors.together();
  allow_files(plan);
  RunOptions with_profile = options;
  std::optional<Profile> own_profile;
  if (!plan.trace.empty() && !options.profile) with_profile.profile = &own_profile.emplace();
  Result<RunReport> run = nicely(plan.limits.nice, [&] { return run_plan(plan, kernels(), with_profile); });
  if (!run) return run;
  if (!plan.trace.empty())
    if (const Status written = write_text(plan.trace, with_profile.profile->trace(), options.overwrite); !written)
      return after_outputs(written.error());
  if (plan.is_reported())
    if (const Status written =
            write_report(report_of(plan, run.value()), plan.report.json, plan.report.html, options.overwrite);
        !written)
      return after_outputs(written.error());
  return run;
}

}  // namespace ggufmill
