#include "pipeline/graph/engine.h"

#include <fmt/format.h>
#include <tbb/info.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "pipeline/graph/measuring.h"
#include "pipeline/graph/run.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

// Greater slabs only make the first read and the last write longer during which nothing else can be done; smaller ones
// cost system calls.
constexpr std::uint64_t kMostSlabBytes = 8 << 20;

unsigned thread_count(const Limits& limits) {
  return limits.threads != 0 ? limits.threads : static_cast<unsigned>(tbb::info::default_concurrency());
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

// Carries all slabs; what carried them.
Result<std::string> carry(Run& run, const RunOptions& options) {
  if (options.engine == EngineKind::kSimple) {
    run_simple(run);
    return std::string("blocking");
  }
  BOOST_OUTCOME_TRY(auto io, IoService::start(options.io));
  run_flow(run, *io);
  return io->name();
}

Result<RunReport> run_checked(const Plan& plan, const Kernels& kernels, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const unsigned threads = thread_count(plan.limits);
  BOOST_OUTCOME_TRY(check_memory(plan));
  BOOST_OUTCOME_TRY(auto work, bind_kernels(plan, kernels));
  RunMeasures measures(plan, work);
  BOOST_OUTCOME_TRY(const auto files, RunFiles::open(plan, options.overwrite));
  SlabFeed feed(plan, slab_bytes(plan, threads, options.slab_bytes), options.shuffle_seed);
  Budget budget(plan.limits.memory);
  RunState state(plan, options);
  Run run{plan, work, *files, feed, budget, state, threads};
  RunReport report;
  BOOST_OUTCOME_TRY(report.io, carry(run, options));
  BOOST_OUTCOME_TRY(state.status());
  BOOST_OUTCOME_TRY(files->seal(options.stop));
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
