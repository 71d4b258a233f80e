#include "pipeline/graph/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "pipeline/graph/measuring.h"
#include "pipeline/graph/run.h"
#include "pipeline/io/machine.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

// Greater slabs leave the caches between the steps, and make the first read and the last write longer during which
// nothing else can be done; of 256 KiB and less the hand-overs from step to step begin to count. (Measured with two
// threads from 256 KiB to 8 MiB: the CPU time is least from 1 to 4 MiB.)
constexpr std::uint64_t kMostSlabBytes = 2 << 20;

// What does not fit into half of the memory would drive out of the page cache what others keep there, and more.
IoMode io_mode(const Plan& plan) {
  if (plan.limits.io) return *plan.limits.io;
  const bool fits = plan.bytes_read() + plan.bytes_written() <= usable_memory() / 2;
  return fits ? IoMode::kCached : IoMode::kStreaming;
}

Status check_memory(const Plan& plan) {
  const std::uint64_t least = least_budget(plan);
  if (plan.limits.memory >= least) return ok();
  return usage_error(fmt::format("a memory limit of {} bytes is too small for this job", plan.limits.memory),
                     fmt::format("its longest row needs {} bytes: set limits.memory to that or more", least));
}

// So that a quarter of the budget is enough to give every thread a slab, while as many again are read, and twice as
// many written.
std::uint64_t slab_bytes(const Plan& plan, unsigned threads, std::uint64_t wanted) {
  const std::uint64_t least = least_budget(plan);
  if (wanted != 0) return std::clamp(wanted, least, plan.limits.memory);
  return std::max(least, std::min(kMostSlabBytes, plan.limits.memory / (4 * std::uint64_t{threads} + 4)));
}

// What goes through the page cache is mostly copied there and then: threads do that with fewer switches between them
// than io_uring (a tenth less time, measured). Past it there is a disk to wait for.
IoKind io_kind(IoKind wanted, IoMode mode) {
  return wanted == IoKind::kAuto && mode != IoMode::kDirect ? IoKind::kThreads : wanted;
}

// Carries all slabs; what carried them.
Result<std::string> carry(Run& run, const RunOptions& options, IoMode mode) {
  if (options.engine == EngineKind::kSimple) {
    run_simple(run);
    return std::string("blocking");
  }
  BOOST_OUTCOME_TRY(auto io, IoService::start(io_kind(options.io, mode)));
  run_flow(run, *io);
  return io->name();
}

Result<RunReport> run_checked(const Plan& plan, const Kernels& kernels, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const unsigned threads = threads_for(plan.limits.threads);
  const IoMode mode = io_mode(plan);
  BOOST_OUTCOME_TRY(check_memory(plan));
  BOOST_OUTCOME_TRY(auto work, bind_kernels(plan, kernels));
  RunMeasures measures(plan, work);
  const unsigned openers = options.engine == EngineKind::kSimple ? 1 : threads;
  BOOST_OUTCOME_TRY(const auto files, RunFiles::open(plan, options.overwrite, mode, openers));
  SlabFeed feed(plan, slab_bytes(plan, threads, options.slab_bytes), options.shuffle_seed);
  Budget budget(plan.limits.memory);
  RunState state(plan, options);
  Run run{plan, work, *files, feed, budget, state, threads, options.profile};
  RunReport report;
  BOOST_OUTCOME_TRY(report.io, carry(run, options, mode));
  if (plan.limits.threads > threads)
    report.warnings.push_back(fmt::format("limits.threads is {}: {} are used, as this process has {} CPUs",
                                          plan.limits.threads, threads, usable_cpus()));
  report.io_mode = mode;
  BOOST_OUTCOME_TRY(state.status());
  BOOST_OUTCOME_TRY(files->seal(options.stop));
  if (options.profile) options.profile->finish(threads);
  report.bytes_read = state.bytes_read();
  report.bytes_written = state.bytes_written();
  report.threads = threads;
  report.targets = measures.results();
  report.peak_budget = budget.peak();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace

Result<RunReport> run_plan(const Plan& plan, const Kernels& kernels, const RunOptions& options) try {
  return run_checked(plan, kernels, options);
} catch (const std::exception& error) {
  return unexpected(error);
}

}  // namespace ggufmill
