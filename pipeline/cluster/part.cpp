#include "pipeline/cluster/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <random>
#include <thread>

#include "pipeline/cluster/done_parts.h"
#include "pipeline/cluster/measured.h"
#include "pipeline/cluster/part_ledger.h"
#include "pipeline/cluster/part_store.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/machine.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/threads.h"
#include "pipeline/manifest/reuse.h"

namespace ggufmill {
namespace {

using Clock = std::chrono::steady_clock;

std::string new_attempt() {
  std::random_device random;
  return fmt::format("{}-{}-{:06x}", host_name().substr(0, 40), process_id(), random() & 0xffffff);
}

// Writes a heartbeat every few seconds on a separate thread. A heartbeat that cannot be written is skipped.
class HeartbeatWriter {
 public:
  HeartbeatWriter(const ClusterJob& job, std::size_t part, const std::string& attempt, const PartLedger& ledger,
                  double seconds)
      : job_(job), part_(part), ledger_(ledger), seconds_(seconds) {
    heartbeat_.attempt = attempt;
    heartbeat_.host = host_name();
    const BlockedSignals blocked;
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~HeartbeatWriter() { end(); }

  void wrote(std::uint64_t bytes) { bytes_ = bytes; }
  // Writes the last heartbeat, with the reason why the part ended.
  void failed(const Error& error, Heartbeat::State state) {
    end();
    heartbeat_.state = state;
    heartbeat_.exit_code = static_cast<int>(error.code);
    heartbeat_.error = render(error);
    write();
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      write();
      wake_.wait_for(lock, stop, std::chrono::duration<double>(seconds_), [] { return false; });
    }
  }
  void write() {
    ++heartbeat_.count;
    heartbeat_.units = ledger_.units_done();
    heartbeat_.bytes_written = bytes_;
    try {
      static_cast<void>(write_heartbeat(job_, part_, heartbeat_));
    } catch (const std::bad_alloc&) {  // exceptions must not leave the thread
    }
  }
  void end() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

  const ClusterJob& job_;
  const std::size_t part_;
  const PartLedger& ledger_;
  const double seconds_;
  Heartbeat heartbeat_;
  std::atomic<std::uint64_t> bytes_{0};
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

// Waits for `seconds`, or until a stop is requested.
void pause(double seconds, const std::atomic<bool>* stop) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end && !(stop && *stop)) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

struct Attempt {
  const Context& context;
  const ClusterJob& job;
  const Plan& plan;
  const PartOptions& options;
  const std::string name = new_attempt();
};

// Checks that the data this part takes from earlier outputs matches their manifests.
Status check_part_taken(const Plan& plan, UnitRange range, const std::atomic<bool>* stop) {
  Plan taken;  // only the members that check_taken() uses
  taken.limits = plan.limits;
  for (std::size_t i = range.first; i < range.last; ++i) {
    const std::size_t step = plan.units[i].step;
    if (i != range.first && plan.units[i - 1].step == step) continue;
    const auto& encodings = plan.steps[step].encodings;
    if (std::ranges::any_of(encodings, [](const Encoding& encoding) { return encoding.taken.has_value(); }))
      taken.steps.push_back(plan.steps[step]);
  }
  return check_taken(taken, stop);
}

Result<PartOutcome> try_once(const Attempt& attempt, PartLedger& ledger, HeartbeatWriter& heart) {
  const auto& [context, job, plan, options, name] = attempt;
  const auto start = Clock::now();
  BOOST_OUTCOME_TRY(check_part_taken(plan, job.range(options.part), options.stop));
  BOOST_OUTCOME_TRY(const auto store, PartStore::open(plan, job, options.part, name));
  EngineOptions run;
  run.store = store.get();
  run.ledger = &ledger;
  run.units = job.range(options.part);
  run.leave = true;
  run.stop = options.stop;
  run.progress = [&heart, &options = options](const Progress& now) {
    heart.wrote(now.bytes_written);
    if (options.progress) options.progress(now);
  };
  PartOutcome outcome;
  BOOST_OUTCOME_TRY(outcome.run, run_into_store(plan, context.kernels(), run));
  outcome.units = run.units->last - run.units->first;
  outcome.units_kept = ledger.units_kept();
  if (ledger.units_lost() != 0)
    outcome.run.warnings.push_back(fmt::format(
        "units of work from an earlier attempt that were damaged or missing and were redone: {}", ledger.units_lost()));
  BOOST_OUTCOME_TRY(store->publish_edges());
  BOOST_OUTCOME_TRY(write_measured(job, options.part, plan, outcome.run));
  DoneMarker marker;
  marker.units = ledger.records();
  marker.host = host_name();
  marker.isa = context.kernels().isa();
  marker.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  marker.bytes_read = outcome.run.bytes_read;
  marker.bytes_written = outcome.run.bytes_written;
  marker.units_kept = outcome.units_kept;
  marker.inodes = store->inodes();
  marker.chunks = store->chunks();
  BOOST_OUTCOME_TRY(write_done(job, options.part, marker));
  ledger.remove_journals();
  store->remove_attempts();
  return outcome;
}

// Returns true if the part is done. If the outputs are uploads and the server does not answer, it is not.
bool is_done(const ClusterJob& job, const Plan& plan, std::size_t part) {
  DoneParts done(job, plan, part);
  return done.check_uploads() && done.is_done(part);
}

constexpr int kPassingErrors[] = {
    EIO,    ENOSPC, ETIMEDOUT, EAGAIN, ENOMEM,
#ifdef ESTALE  // where file systems of a network have it
    ESTALE, EDQUOT,
#endif
};

}  // namespace

bool may_pass(const Error& error) {
  if (error.code == ExitCode::kTransient) return true;
  if (error.code != ExitCode::kIo) return false;
  return std::ranges::any_of(kPassingErrors, [&](int number) { return error.what.ends_with(std::strerror(number)); });
}

Result<PartOutcome> run_part(const Context& context, const ClusterJob& job, const Plan& plan,
                             const PartOptions& options) {
  if (options.part >= job.parts())
    return usage_error(fmt::format("part {} does not exist", options.part),
                       fmt::format("parts are numbered from 0 to {}", job.parts() - 1));
  if (is_done(job, plan, options.part)) {
    PartOutcome outcome;
    outcome.was_done = true;
    return outcome;
  }
  const Attempt attempt{context, job, plan, options};
  PartLedger ledger(plan, job, options.part, attempt.name);
  HeartbeatWriter heart(job, options.part, attempt.name, ledger, options.heartbeat_seconds);
  constexpr double kPauses[] = {1, 5, 15};  // seconds before each retry
  for (std::size_t tries = 0;; ++tries) {
    auto outcome = try_once(attempt, ledger, heart);
    if (outcome) return outcome;
    // Another attempt may have finished first and removed this attempt's files.
    if (is_done(job, plan, options.part)) {
      PartOutcome done;
      done.was_done = true;
      return done;
    }
    Error error = outcome.error();
    const bool stopped = options.stop && *options.stop;
    if (!stopped && may_pass(error) && tries < std::size(kPauses)) {
      pause(kPauses[tries], options.stop);
      continue;
    }
    if (stopped || may_pass(error)) error.code = ExitCode::kTransient;
    if (error.detail == "nothing was written") error.detail.clear();
    if (!error.detail.empty()) error.detail += '\n';
    const UnitRange range = job.range(options.part);
    error.detail += fmt::format("part {}: {} of {} units of work are done and kept", job.first_part + options.part,
                                ledger.units_done(), range.last - range.first);
    heart.failed(error, error.code == ExitCode::kTransient ? Heartbeat::State::kStopped : Heartbeat::State::kFailed);
    return error;
  }
}

namespace {

// Returns the value of a variable; zero if it is not set.
Result<std::uint64_t> number_in(const char* name, const std::function<const char*(const char*)>& variable) {
  const char* text = variable(name);
  if (!text || !*text) return 0;
  std::uint64_t number = 0;
  const std::string_view all = text;
  const auto read = std::from_chars(all.data(), all.data() + all.size(), number);
  if (read.ec == std::errc() && read.ptr == all.data() + all.size() && number < (std::uint64_t{1} << 40)) return number;
  return usage_error(fmt::format("the environment variable {} is {}, not a number", name, quoted_name(all)),
                     "Slurm sets it; unset it when running without Slurm");
}

}  // namespace

Status take_limits(Limits& limits, const std::function<const char*(const char*)>& variable) {
  constexpr std::uint64_t kPerThread = 16 << 20;
  BOOST_OUTCOME_TRY(const std::uint64_t cpus, number_in("SLURM_CPUS_PER_TASK", variable));
  BOOST_OUTCOME_TRY(const std::uint64_t per_node, number_in("SLURM_MEM_PER_NODE", variable));  // MiB
  BOOST_OUTCOME_TRY(const std::uint64_t per_cpu, number_in("SLURM_MEM_PER_CPU", variable));
  if (limits.threads == 0 && cpus != 0)
    limits.threads = static_cast<unsigned>(std::min<std::uint64_t>(cpus, Limits::kMaxThreads));
  const std::uint64_t given = (per_node != 0 ? per_node : per_cpu * std::max<std::uint64_t>(cpus, 1)) << 20;
  if (limits.memory || given == 0) return ok();
  const std::uint64_t useful =
      std::max<std::uint64_t>(Limits::kDefaultMemory, kPerThread * std::max(limits.threads, 1U));
  limits.memory = std::min(useful, given / 4 * 3);
  return ok();
}

}  // namespace ggufmill
