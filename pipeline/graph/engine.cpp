#include "pipeline/graph/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>

#include "pipeline/core/text.h"
#include "pipeline/graph/convert.h"
#include "pipeline/graph/run.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/plan/problems.h"
#include "pipeline/plan/slabs.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

// A job larger than half of the memory would evict other processes' data from the page cache.
IoMode io_mode(const Plan& plan) {
  if (plan.limits.io) return *plan.limits.io;
  const bool fits = plan.bytes_read() + plan.bytes_written() <= usable_memory() / 2;
  return fits ? IoMode::kCached : IoMode::kStreaming;
}

Status check_memory(const Plan& plan, std::span<const StepLayout> layouts) {
  const std::uint64_t given = memory_budget(plan.limits), least = least_budget(layouts);
  if (given >= least) return ok();
  Error error = usage_error(fmt::format("a memory limit of {} is too small for this job", counted(given, "byte")),
                            fmt::format("its longest rows need {} bytes: set limits.memory to that or more", least));
  error.detail = why_least_budget(layouts);
  if (!error.detail.empty()) error.help = fmt::format("set limits.memory to {} bytes or more", least);
  return error;
}

// Chooses the slab size so that a quarter of the budget gives every thread a slab, while as many slabs again are being
// read and twice as many written. Slabs larger than a read request do not stay in the caches from node to node. They
// also lengthen the first read and the last write, during which nothing else can be done. At 256 KiB and below, the
// cost of passing slabs from node to node begins to matter. (Measured with two threads from 256 KiB to 8 MiB: CPU time
// is lowest from 1 to 4 MiB.)
std::uint64_t slab_bytes(const Plan& plan, const RunSources& sources, unsigned threads, std::uint64_t least,
                         std::uint64_t budget, std::uint64_t wanted) {
  if (wanted != 0) return std::clamp(wanted, least, budget);
  std::uint64_t most = 1 << 20;
  for (const SourceRef& source : plan.sources)
    most = std::max<std::uint64_t>(most, sources.of(*source).request_bytes());
  return std::max(least, std::min(most, budget / (4 * std::uint64_t{threads} + 4)));
}

// Transfers through the page cache are mostly immediate copies. Threads do these with fewer context switches than
// io_uring (measured: a tenth less time). Only direct I/O has to wait for the disk.
IoKind io_kind(IoKind wanted, IoMode mode) {
  return wanted == IoKind::kAuto && mode != IoMode::kDirect ? IoKind::kThreads : wanted;
}

// Processes all slabs; returns the name of the I/O method used.
Result<std::string> run_slabs(Run& run, const EngineOptions& options, IoMode mode) {
  if (options.engine == EngineKind::kSimple) {
    run_plain(run);
    return std::string("blocking");
  }
  BOOST_OUTCOME_TRY(auto io, IoService::start(io_kind(options.io, mode)));
  if (run.profile) run.profile->enter(ProfilePhase::kConvert);
  run_flow(run, *io);
  if (run.profile) run.profile->enter(ProfilePhase::kClose);
  return io->name();
}

Status check_problems(const Plan& plan, const Kernels& kernels) {
  Diagnostics errors;
  find_problems(plan, kernels.files(), errors);
  if (!errors.empty()) return errors.together();
  return ok();
}

Result<std::unique_ptr<OutputStore>> open_store(const Plan& plan, const EngineOptions& options, IoMode mode,
                                                unsigned threads) {
  std::vector<StoredFile> files = stored_files(plan);
  StoreOptions store;
  if (!files.empty()) store = store_options(plan);
  store.overwrite = options.overwrite;
  store.mode = mode;
  store.threads = threads;
  store.stop = options.stop;
  BOOST_OUTCOME_TRY(const StoreScheme* const scheme, find_store_scheme(files));
  return options.attach ? scheme->attach(std::move(files), store) : scheme->create(std::move(files), store);
}

// The measurements of a plan's steps. Empty if neither a report nor a comparison is wanted.
class Measures {
 public:
  // Assigns a measure to every encoding and comparison; must outlive all use of `steps`. `is_partial`: only some of the
  // units are to be done.
  Measures(const Plan& plan, std::vector<BoundStep>& steps, bool is_partial) : steps_(steps) {
    const bool reports = plan.is_reported() || plan.report.error;
    for (BoundStep& step : steps) {
      const std::uint64_t rows = step.step->expression->shape.rows(), of_matrix = step.step->expression->shape.dims[1];
      const bool has_matrices = plan.report.matrices && rows > of_matrix;
      if (reports)
        for (BoundEncoding& encoding : step.encodings)
          encoding.measure = &measures_.emplace_back(rows, is_partial, has_matrices ? of_matrix : 0);
      if (!step.step->compared) continue;
      step.measure = &measures_.emplace_back(rows, is_partial);
      step.differs = &differs_.emplace_back(step.step->expression->type != step.step->compared->type);
    }
  }

  std::vector<StepResult> results() const {
    std::vector<StepResult> results;
    if (measures_.empty()) return results;
    for (const BoundStep& step : steps_) {
      StepResult& result = results.emplace_back();
      for (const BoundEncoding& encoding : step.encodings) result.encodings.push_back(encoding.measure->result());
      if (!step.measure) continue;
      result.same_bytes = !*step.differs;
      result.difference = step.measure->result().error;
    }
    return results;
  }

 private:
  const std::vector<BoundStep>& steps_;
  std::deque<TargetMeasure> measures_;  // a deque never moves its elements
  std::deque<std::atomic<bool>> differs_;
};

// Counts values that are not finite, if they are not an error.
class NonfiniteCounts {
 public:
  // Must outlive all use of `steps`.
  NonfiniteCounts(const Plan& plan, std::vector<BoundStep>& steps) : plan_(plan) {
    if (plan.nonfinite == Nonfinite::kError) return;
    for (BoundStep& step : steps) {
      step.nonfinite = plan.nonfinite;
      step.nonfinite_count = &counts_.emplace_back();
    }
  }

  void warn(std::vector<std::string>& warnings) const {
    constexpr std::size_t kMaxTensors = 20;
    std::size_t tensors = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const NonfiniteCount::Sums sums = counts_[i].sums();
      if (sums.values + sums.blocks == 0 || ++tensors > kMaxTensors) continue;
      const Step& step = plan_.steps[i];
      warnings.push_back(fmt::format(
          "tensor '{}': {} not finite, {}; the first in row {}, column {}, {}", step.name,
          sums.blocks == 0   ? is_or_are(sums.values, "value")
          : sums.values == 0 ? is_or_are(sums.blocks, "block")
                             : fmt::format("{} and {}", counted(sums.values, "value"), is_or_are(sums.blocks, "block")),
          plan_.nonfinite == Nonfinite::kZero ? "and written as 0" : "and kept", sums.row, sums.column,
          place_of_value(*step.expression, sums.row, sums.column)));
    }
    if (tensors > kMaxTensors) warnings.push_back(fmt::format("and {} more tensors like these", tensors - kMaxTensors));
  }

 private:
  static std::string is_or_are(std::uint64_t count, std::string_view noun) {
    return fmt::format("{} {}", counted(count, noun), count == 1 ? "is" : "are");
  }

  const Plan& plan_;
  std::deque<NonfiniteCount> counts_;  // a deque never moves its elements
};

// Whatever an engine does, outputs with missing units are not published.
Status check_complete(const RunState& state, const std::vector<bool>& wanted) {
  const auto all = static_cast<std::size_t>(std::ranges::count(wanted, true));
  if (state.units_done() == all) return ok();
  return Error{ExitCode::kInternal, "", fmt::format("the run ended with {} of {} units done", state.units_done(), all),
               "nothing was written", "this is a bug in ggufmill: please report it"};
}

Status publish(OutputStore& store, const RunState& state, Ledger& ledger, const EngineOptions& options,
               const RunReport& report) {
  BOOST_OUTCOME_TRY(const std::vector<FileId> files, store.seal(state.file_bytes()));
  BOOST_OUTCOME_TRY(ledger.sealed(files));
  if (options.when_sealed) {
    BOOST_OUTCOME_TRY(options.when_sealed(store, report));
  }
  if (state.stopped()) return interrupted();
  return store.publish();
}

template <class F>
Status caught(const F& f) try {
  return f();
} catch (...) {
  return error_of_exception();
}

Result<RunReport> run_checked(const Plan& plan, const Kernels& kernels, const EngineOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const unsigned threads = options.threads != 0 ? options.threads : threads_for(plan.limits.threads);
  BOOST_OUTCOME_TRY(check_problems(plan, kernels));
  RunReport report;
  report.threads = threads;
  if (plan.limits.threads > threads)
    report.warnings.push_back(fmt::format("limits.threads is {}: using {}, because this process has {} CPUs",
                                          plan.limits.threads, threads, usable_cpus()));
  report.io_mode = io_mode(plan);
  const std::vector<StepLayout> layouts = layouts_of(plan);
  BOOST_OUTCOME_TRY(check_memory(plan, layouts));
  BOOST_OUTCOME_TRY(auto steps, bind_kernels(plan, layouts, kernels));
  const Measures measures(plan, steps, options.units.has_value());
  const NonfiniteCounts nonfinite(plan, steps);
  BOOST_OUTCOME_TRY(const auto sources, RunSources::open(plan, report.io_mode, options.stop));
  const unsigned openers = options.engine == EngineKind::kSimple ? 1 : threads;
  std::unique_ptr<OutputStore> opened;
  if (!options.store) {
    BOOST_OUTCOME_TRY(opened, open_store(plan, options, report.io_mode, openers));
  }
  OutputStore& store = options.store ? *options.store : *opened;
  for (std::string& warning : store.warnings()) report.warnings.push_back(std::move(warning));
  NoLedger nothing_done;
  Ledger& ledger = options.ledger ? *options.ledger : nothing_done;
  const UnitRange units = options.units.value_or(UnitRange{0, plan.units.size()});
  const Status status = caught([&]() -> Status {
    BOOST_OUTCOME_TRY(ledger.begin(store, threads, options.stop));
    std::vector<bool> wanted(plan.units.size()), done(plan.units.size());
    for (std::size_t unit = 0; unit < done.size(); ++unit) done[unit] = ledger.is_done(unit);
    for (std::size_t unit = units.first; unit < std::min(units.last, wanted.size()); ++unit) wanted[unit] = !done[unit];
    if (std::ranges::count(done, true) != 0) {
      report.steps_kept.resize(plan.steps.size());
      for (std::size_t unit = 0; unit < done.size(); ++unit)
        if (done[unit]) report.steps_kept[plan.units[unit].step] = true;
    }
    Budget budget(memory_budget(plan.limits) - store.memory());
    Metrics metrics(budget);
    const std::uint64_t least = least_slab(layouts);
    Feed feed(plan, layouts, slab_bytes(plan, *sources, threads, least, budget.bytes(), options.slab_bytes),
              budget.bytes(), options.shuffle_seed, [&](std::size_t unit) { return wanted[unit]; });
    RunState state(plan, options, ledger, done);
    Run run{plan, steps, kernels, *sources, store, feed, budget, metrics, state, threads, options.profile};
    BOOST_OUTCOME_TRY(report.io, run_slabs(run, options, report.io_mode));
    BOOST_OUTCOME_TRY(state.status());
    for (std::string& fault : metrics.faults()) report.warnings.push_back(std::move(fault));
    BOOST_OUTCOME_TRY(check_complete(state, wanted));
    BOOST_OUTCOME_TRY(sources->check_unchanged());
    report.steps = measures.results();
    if (options.profile) options.profile->found(store.findings());
    BOOST_OUTCOME_TRY(options.leave ? store.leave() : publish(store, state, ledger, options, report));
    report.bytes_read = state.bytes_read();
    report.bytes_written = state.bytes_written();
    report.peak_budget = budget.peak() + store.memory();
    return ok();
  });
  if (!status) {
    if (ledger.keeps(status.error())) store.keep();
    return status.error();
  }
  if (options.profile) options.profile->finish(threads);
  nonfinite.warn(report.warnings);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace

Result<RunReport> run_plan(const Plan& plan, const Kernels& kernels, const EngineOptions& options) try {
  return run_checked(plan, kernels, options);
} catch (...) {
  return error_of_exception();
}

}  // namespace ggufmill
