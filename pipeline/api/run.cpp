// Runs a plan and writes its reports.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <optional>

#include "pipeline/api/check.h"
#include "pipeline/api/context.h"
#include "pipeline/api/manifests.h"
#include "pipeline/api/reports.h"
#include "pipeline/api/run.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/graph/profile.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/stop_scope.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/journal/journal.h"
#include "pipeline/manifest/reuse.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

// With many recipes or shards, the outputs can exceed the default limit on open files.
void allow_files(const Plan& plan) {
  constexpr std::uint64_t kOthers = 256;  // for the program and for files other than sources and outputs
  std::uint64_t needed = kOthers + plan.sources.size();
  for (const PlannedOutput& output : plan.outputs) needed += 2 * output.files.size();  // each file with its folder
  allow_open_files(needed);
}

// Runs a plan on this thread, whose stop is that of the run.
Result<RunReport> run_stoppably(const Plan& plan, const Kernels& kernels, const EngineOptions& engine) {
  const StopScope scope(engine.stop);
  return run_plan(plan, kernels, engine);
}

// Runs `work` on a new thread with the given niceness, which its own threads inherit; the caller's thread keeps its
// priority.
Result<RunReport> nicely(unsigned nice, const std::function<Result<RunReport>()>& work) {
  if (nice == 0) return work();
  const auto nicer_work = [&] {
    const bool is_nicer = lower_priority(nice);
    Result<RunReport> result = work();
    if (!is_nicer && result) result.value().warnings.emplace_back("the niceness could not be changed");
    return result;
  };
  try {
    return std::async(std::launch::async, nicer_work).get();
  } catch (...) {
    return error_of_exception();
  }
}

// Adds what an interrupted run has left, and how to continue it.
Error with_hint(Error error, const Plan& plan, const Journal& journal) {
  const std::size_t done = journal.units_kept() + journal.units_done();
  if (error.detail == "nothing was written") error.detail.clear();
  if (!error.detail.empty()) error.detail += '\n';
  const auto scheme = find_store_scheme(stored_files(plan));
  const bool keeps_all = !scheme || scheme.value()->keeps_all();
  error.detail += fmt::format("{} of {} units of work are done{}", done, plan.units.size(),
                              keeps_all ? " and kept" : ", and kept as far as they are uploaded");
  if (!error.help.empty()) error.help += "; ";
  error.help += fmt::format("run the same command again to resume, or with {} to remove the partial output",
                            option_reference("discard", "true"));
  return error;
}

std::string restart_warning(const Journal& journal) {
  return "cannot resume an earlier run of this plan: " + journal.restart_reason();
}

// The run has succeeded: removes the journal and adds the user's warnings about earlier runs.
void finish(Journal& journal, const RunOptions& options, RunReport& report) {
  journal.remove();
  report.units_kept = journal.units_kept();
  if (!journal.restart_reason().empty() && !options.starts_over) report.warnings.push_back(restart_warning(journal));
  if (journal.units_damaged() != 0)
    report.warnings.push_back(
        fmt::format("units of work of the earlier run that were damaged or missing on disk and were redone: {}",
                    journal.units_damaged()));
  for (const std::string& warning : journal.warnings()) report.warnings.push_back(warning);
}

// Writes the manifests of outputs that have their final names. Their checksums are those of the bytes that can be read
// now, so these must be the bytes that were written.
Status add_later_manifests(const Plan& plan, const RunReport* run, Journal& journal, const std::atomic<bool>* stop) {
  BOOST_OUTCOME_TRY(journal.check(published_files(plan), true, threads_for(plan.limits.threads), stop));
  return add_manifests(plan, run, stop);
}

// An earlier run was killed after everything was written, while the files were being renamed to their final names.
Result<RunReport> give_names(const Plan& plan, Journal& journal, const RunOptions& options) {
  const std::vector<StoredFile> files = stored_files(plan);
  StoreOptions store = store_options(plan);
  store.overwrite = options.overwrite;
  store.stop = options.stop;
  BOOST_OUTCOME_TRY(const StoreScheme* const scheme, find_store_scheme(files));
  BOOST_OUTCOME_TRY(scheme->finish_publishing(files, journal.half_published(), store));
  if (plan.manifest) {
    BOOST_OUTCOME_TRY(add_later_manifests(plan, nullptr, journal, options.stop));
  }
  RunReport report;
  finish(journal, options, report);
  report.units_kept = plan.units.size();
  report.warnings.push_back("an earlier run had written everything; only making the files visible was left to do");
  return report;
}

// Verifies, before the files are published, that they contain what was written. Bytes are read back if something has
// touched the files, and always if a manifest is to vouch for them; publish() detects later changes. A store that is
// not readable yet vouches for the bytes itself.
Status check_sealed(const Plan& plan, Journal& journal, OutputStore& store, const std::atomic<bool>* stop) {
  if (!store.is_readable()) return ok();
  const FileReader read = [&](std::size_t i, std::uint64_t at, std::span<std::byte> into) {
    return store.read(i, at, into);
  };
  BOOST_OUTCOME_TRY(const bool as_left, store.is_as_left());
  return journal.check(read, plan.manifest || !as_left, threads_for(plan.limits.threads), stop);
}

// Finds sources that were rewritten since the plan was made and had their times set back; the engine detects other
// changes.
Status check_inode_times(const Plan& plan) {
  for (std::size_t i = 0; i < std::min(plan.sources.size(), plan.inode_times.size()); ++i) {
    const std::int64_t now = inode_time(plan.sources[i]->path);
    if (now == 0 || plan.inode_times[i] == 0 || now == plan.inode_times[i]) continue;
    Error error = changed(*plan.sources[i], *plan.sources[i]);
    error.detail = kInodeChanged;
    return error;
  }
  return ok();
}

// For errors in the report or the trace: the outputs exist already.
Error after_outputs(Error error) {
  if (!error.detail.empty()) error.detail += '\n';
  error.detail += "the outputs were written";
  return error;
}

// The outputs exist, and the journal too: the same command adds the manifests.
Error without_manifests(Error error) {
  error = after_outputs(std::move(error));
  error.detail += ", but not their manifests";
  if (!error.help.empty()) error.help += "; ";
  error.help += "run the same command again to add them";
  return error;
}

}  // namespace

Report Context::report_of(const Plan& plan, const RunReport& run) const {
  return ggufmill::report_of(plan, run, kernels().isa());
}

Leftovers Context::leftovers(const Plan& plan) const { return find_leftovers(plan); }

Status Context::discard(const Leftovers& leftovers) const { return ggufmill::discard(leftovers); }

EngineOptions engine_options(const RunOptions& options) {
  EngineOptions engine;
  engine.engine = options.engine;
  engine.io = options.io;
  engine.overwrite = options.overwrite;
  engine.stop = options.stop;
  engine.progress = options.progress;
  engine.profile = options.profile;
  return engine;
}

Result<RunReport> run_into_store(const Plan& plan, const Kernels& kernels, const EngineOptions& engine) {
  Diagnostics problems;
  check_plan(plan, kernels, problems);
  if (!problems.empty()) return problems.together();
  allow_files(plan);
  return nicely(plan.limits.nice, [&] { return run_stoppably(plan, kernels, engine); });
}

Result<RunReport> run_resumably(const Plan& plan, const Kernels& kernels, const RunOptions& options,
                                EngineOptions engine) {
  BOOST_OUTCOME_TRY(const std::unique_ptr<Journal> journal, Journal::open(plan));
  if (options.resume && !journal->half_published().empty()) return give_names(plan, *journal, options);
  std::error_code ignored;
  Diagnostics errors;
  check_run(plan, kernels, options.overwrite, errors);
  if (!errors.empty()) return errors.together();
  BOOST_OUTCOME_TRY(check_inode_times(plan));
  BOOST_OUTCOME_TRY(check_taken(plan, options.stop));
  for (const std::string& path : orphaned_manifests(plan)) fs::remove(path, ignored);
  allow_files(plan);
  std::optional<Profile> own_profile;
  if (!plan.trace.empty() && !engine.profile) engine.profile = &own_profile.emplace();
  if (!options.resume) journal->forget();
  engine.ledger = journal.get();
  engine.attach = journal->goes_on();
  if (options.resume && options.starts_over && !journal->restart_reason().empty())
    options.starts_over(restart_warning(*journal));
  ManifestFiles manifests;
  bool has_manifests = !plan.manifest;
  engine.when_sealed = [&, first = std::move(engine.when_sealed)](OutputStore& store,
                                                                  const RunReport& results) -> Status {
    if (first) {
      BOOST_OUTCOME_TRY(first(store, results));
    }
    BOOST_OUTCOME_TRY(check_sealed(plan, *journal, store, options.stop));
    if (has_manifests || !store.is_readable()) return ok();
    const auto read = [&](std::size_t i, std::uint64_t at, std::span<std::byte> into) {
      return store.read(i, at, into);
    };
    BOOST_OUTCOME_TRY(manifests, ManifestFiles::make(plan, &results, read, options.overwrite, options.stop));
    manifests.publish_with(store);
    has_manifests = true;
    return ok();
  };
  Result<RunReport> run = nicely(plan.limits.nice, [&] { return run_stoppably(plan, kernels, engine); });
  if (!run) return journal->was_kept() ? with_hint(run.error(), plan, *journal) : run.error();
  BOOST_OUTCOME_TRY(manifests.publish());
  if (!has_manifests)
    if (const Status added = add_later_manifests(plan, &run.value(), *journal, options.stop); !added)
      return without_manifests(added.error());
  for (std::string& warning : manifests.warnings()) run.value().warnings.push_back(std::move(warning));
  finish(*journal, options, run.value());
  if (!plan.trace.empty())
    if (const Status written = write_text(plan.trace, engine.profile->trace(), options.overwrite); !written)
      return after_outputs(written.error());
  if (!plan.is_reported()) return run;
  const Report report = report_of(plan, run.value(), kernels.isa());
  for (std::string& warning : unmeasured_warnings(report)) run.value().warnings.push_back(std::move(warning));
  if (const Status written = write_report(report, plan.report.json, plan.report.html, options.overwrite); !written)
    return after_outputs(written.error());
  return run;
}

Result<RunReport> Context::run(const Plan& plan, const RunOptions& options) const {
  const StopScope scope(options.stop);
  return run_resumably(plan, kernels(), options, engine_options(options));
}

}  // namespace ggufmill
