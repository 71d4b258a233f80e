#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>
#include <tbb/version.h>

#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pipeline/graph/convert.h"

namespace ggufmill {
namespace {

// feed -> read -> convert -> write -> feed: a loop through which the slabs circulate.
//
// Only feed acquires and releases budget, and it runs serially: the budget of every returned slab is released before
// the next slab is tried, and when no slab is in flight the whole budget is free. So some slab can always start. No
// node body blocks: read and write start transfers with the sources and the store, convert submits to the converter,
// and their completion callbacks put the slab back into the loop. Every slab returns to feed; after an error the nodes
// only pass it on.
class FlowEngine {
 public:
  FlowEngine(Run& run, IoService& io);

  // TBB throws if it cannot start a thread although the graph has work, which must be finished before the nodes are
  // destroyed.
  void run() {
    bool is_over = run_.state.guard(0, RunState::kRead, [&] { feed_.try_put(nullptr); });
    do {
      is_over = run_.state.guard(0, RunState::kRead, [&] { graph_.wait_for_all(); });
    } while (!is_over);
  }

 private:
  using Feed = tbb::flow::multifunction_node<Slab*, std::tuple<Slab*>>;
  using Async = tbb::flow::async_node<Slab*, Slab*>;

  // Calls f, which does a step that feed does for all slabs.
  template <class F>
  bool alone(ProfileStep step, std::uint64_t ordinal, std::uint64_t at, const F& f) noexcept {
    const Profile::Clock::time_point start = run_.profile ? Profile::Clock::now() : Profile::Clock::time_point();
    const bool done = run_.state.guard(ordinal, at, f);
    if (run_.profile) run_.profile->alone(step, start);
    return done;
  }
  void feed(Slab* done, Feed::output_ports_type& ports);
  void release(Slab* slab);
  Slab* next_slab();
  bool read_if_cached(const Slab& slab);
  void read(Slab* slab);
  void read_done(Slab* slab, const Status& status);
  void convert(Slab* slab);
  void convert_ready(Slab* slab);
  void make(Metric& metric);
  void write(Slab* slab);
  void write_place(Slab* slab, const SlabPart& part, std::size_t encoding, const Place& place);
  void write_done(Slab* slab, const Status& status);
  // Puts a slab that `node` has taken out of the loop back into it; callable from any thread.
  void put_back(Slab* slab, Async& node);

  Run& run_;
  IoService& io_;
  ImportanceWeights weights_;
  // Used only by feed.
  std::vector<std::unique_ptr<Slab>> under_way_;
  std::optional<SlabBatch> next_;
  std::uint64_t ordinal_ = 0;
  bool is_drained_ = false;  // there are no more slabs

  std::unique_ptr<Converter> converter_;  // destroyed after the graph, whose threads may still use it
  tbb::flow::graph graph_;
  Feed feed_;
  Async read_;
  Async convert_;
  Async write_;
};

// More slabs in flight than this would only make the caches colder: for every thread, one slab being converted, one
// being read and two being written.
std::size_t most_under_way(unsigned threads) { return 4 * std::size_t{threads} + 4; }

FlowEngine::FlowEngine(Run& run, IoService& io)
    : run_(run),
      io_(io),
      converter_(make_parallel_converter(run.steps, run.kernels, run.state)),
      feed_(graph_, tbb::flow::serial, [this](Slab* done, auto& ports) { feed(done, ports); }),
      read_(graph_, tbb::flow::unlimited, [this](Slab* slab, auto&) { read(slab); }),
      convert_(graph_, tbb::flow::unlimited, [this](Slab* slab, auto&) { convert(slab); }),
      write_(graph_, tbb::flow::unlimited, [this](Slab* slab, auto&) { write(slab); }) {
  using tbb::flow::make_edge;
  make_edge(tbb::flow::output_port<0>(feed_), read_);
  make_edge(read_, convert_);
  make_edge(convert_, write_);
  make_edge(write_, feed_);
}

void FlowEngine::put_back(Slab* slab, Async& node) {
  run_.state.guard(slab->ordinal, RunState::kWrite, [&] { node.gateway().try_put(slab); });
  node.gateway().release_wait();
}

void FlowEngine::feed(Slab* done, Feed::output_ports_type& ports) {
  if (done) release(done);
  while (Slab* slab = next_slab())
    run_.state.guard(slab->ordinal, RunState::kRead, [&] { std::get<0>(ports).try_put(slab); });
}

void FlowEngine::release(Slab* slab) {
  const std::uint64_t cost = slab->cost, ordinal = slab->ordinal;
  const Metrics::Used metrics = std::move(slab->metrics);
  alone(ProfileStep::kRecord, ordinal, RunState::kWrite, [&] { run_.state.finished(*slab); });
  alone(ProfileStep::kFree, ordinal, RunState::kWrite, [&] {  // before the budget is released
    std::erase_if(under_way_, [&](const auto& other) { return other.get() == slab; });
  });
  run_.metrics.release(cost, metrics);
}

// Returns the next slab with its memory; null if none is left or the budget does not allow it now.
Slab* FlowEngine::next_slab() {
  if (run_.state.feeds_no_more() || under_way_.size() >= most_under_way(run_.threads)) return nullptr;
  if (!next_ && !alone(ProfileStep::kCut, ordinal_, RunState::kRead, [&] { next_ = run_.feed.next(); })) return nullptr;
  if (!next_) {
    if (run_.profile && !is_drained_) run_.profile->enter(ProfilePhase::kDrain);
    is_drained_ = true;
    return nullptr;
  }
  Metrics::Used metrics;
  bool is_acquired = false;
  const auto acquired = [&] { is_acquired = acquire(run_, *next_, ordinal_, metrics); };
  if (!run_.state.guard(ordinal_, RunState::kRead, acquired) || !is_acquired) return nullptr;
  const bool made = alone(ProfileStep::kMake, ordinal_, RunState::kRead, [&]() -> Status {
    BOOST_OUTCOME_TRY(auto slab, make_slab(*next_, ordinal_, run_.steps, weights_, is_direct(run_.plan)));
    slab->profile = run_.profile;
    slab->metrics = metrics;
    under_way_.push_back(std::move(slab));
    return ok();
  });
  if (!made) run_.metrics.release(next_->cost, metrics);
  next_.reset();
  ++ordinal_;
  return made ? under_way_.back().get() : nullptr;
}

// Cached data is copied by the thread that will probably convert it next.
bool FlowEngine::read_if_cached(const Slab& slab) {
  const Profile::Clock::time_point start = Profile::Clock::now();
  for (const SlabRead& read : slab.reads)
    if (!run_.sources.of(read).read_if_cached(read.offset, read.into)) return false;
  if (run_.profile) run_.profile->worked(ProfileStep::kRead, slab, slab.parts.front(), start);
  return true;
}

void FlowEngine::read(Slab* slab) {
  read_.gateway().reserve_wait();
  bool is_read = run_.state.skips(slab->ordinal);
  const bool looked =
      is_read || run_.state.guard(slab->ordinal, RunState::kRead, [&] { is_read = read_if_cached(*slab); });
  if (is_read || !looked) return put_back(slab, read_);
  const std::size_t reads = slab->reads.size();  // the slab may be destroyed after its last read
  for (std::size_t i = 0; i < reads; ++i) {
    const SlabRead& read = slab->reads[i];
    const bool started = run_.state.guard(slab->ordinal, RunState::kRead, [&] {
      run_.sources.of(read).start_read(
          io_, read.offset, read.into, [this, slab, start = Profile::Clock::now()](const Status& status) {
            if (run_.profile) run_.profile->transferred(ProfileStep::kRead, *slab, slab->parts.front(), start);
            read_done(slab, status);
          });
    });
    if (!started) read_done(slab, ok());
  }
}

void FlowEngine::read_done(Slab* slab, const Status& status) {
  run_.state.guard(slab->ordinal, RunState::kRead, [&] { return status; });
  if (slab->reads_left.fetch_sub(1, std::memory_order_acq_rel) == 1) put_back(slab, read_);
}

// A slab may have to wait for importance that is read with another slab; it continues when that slab arrives here.
void FlowEngine::convert(Slab* slab) {
  convert_.gateway().reserve_wait();
  if (!run_.state.skips(slab->ordinal))
    run_.state.guard(slab->ordinal, RunState::kTiles, [&] { return weights_.finish_reads(*slab); });
  for (Slab *ready = weights_.ready_slabs(*slab), *next = nullptr; ready; ready = next) {
    next = ready->next;  // the slab may be destroyed once it is converted
    convert_ready(ready);
  }
}

// A slab may have to wait for metrics, too. The first one that needs a metric has it made.
void FlowEngine::convert_ready(Slab* slab) {
  bool must_make = false;
  if (Metric* const metric = run_.metrics.wait_for(*slab, must_make)) {
    if (must_make) converter_->run([this, metric] { make(*metric); });
    return;
  }
  converter_->submit(*slab, [this, slab] { put_back(slab, convert_); });
}

void FlowEngine::make(Metric& metric) {
  make_metric(run_, converter_->for_each(), metric);
  for (Slab *waiting = run_.metrics.made(metric), *next = nullptr; waiting; waiting = next) {
    next = waiting->next;
    convert_ready(waiting);
  }
}

void FlowEngine::write(Slab* slab) {
  write_.gateway().reserve_wait();
  if (run_.state.spoiled(slab->ordinal)) return put_back(slab, write_);
  if (!run_.state.guard(slab->ordinal, RunState::kWrite, [&] { run_.state.sum_up(*slab); }))
    return put_back(slab, write_);
  ++slab->writes_left;  // keeps the slab alive until all its writes are started
  for (const SlabPart& part : slab->parts)
    for (std::size_t i = 0; i < part.encoded.size(); ++i)
      for (const Place& place : part.step->encodings[i].encoding->places) write_place(slab, part, i, place);
  write_done(slab, ok());
}

void FlowEngine::write_place(Slab* slab, const SlabPart& part, std::size_t encoding, const Place& place) {
  const bool started = run_.state.guard(slab->ordinal, RunState::kWrite, [&] {
    run_.store.start_write(io_, run_.state.file_of(place), place.offset + part.offset_in_place(encoding),
                           part.encoded_bytes(encoding),
                           [this, slab, &part, start = Profile::Clock::now()](const Status& status) {
                             if (run_.profile) run_.profile->transferred(ProfileStep::kWrite, *slab, part, start);
                             write_done(slab, status);
                           });
  });
  if (!started) write_done(slab, ok());
}

void FlowEngine::write_done(Slab* slab, const Status& status) {
  run_.state.guard(slab->ordinal, RunState::kWrite, [&] { return status; });
  if (slab->writes_left.fetch_sub(1, std::memory_order_acq_rel) == 1) put_back(slab, write_);
}

// Throws std::bad_alloc if there may be too little memory for an arena. oneTBB would not return then: it throws while
// it holds a lock that its function for throwing waits for.
void check_memory_for_arena(unsigned threads) {
  constexpr std::size_t kShared = std::size_t{1} << 20, kOfThread = std::size_t{64} << 10;  // more than it takes
  void* volatile memory = ::operator new(kShared + threads * kOfThread);  // volatile: not optimized away
  ::operator delete(memory);
}

}  // namespace

std::string engine_library_version() { return ::TBB_runtime_version(); }

void run_flow(Run& run, IoService& io) {
  check_memory_for_arena(run.threads);
  // More threads than CPUs must be requested explicitly. For fewer, limiting the arena suffices: the process-wide limit
  // is shared with other runs and the host program.
  std::optional<tbb::global_control> more;
  if (run.threads > static_cast<unsigned>(tbb::info::default_concurrency()))
    more.emplace(tbb::global_control::max_allowed_parallelism, run.threads);
  tbb::task_arena arena(static_cast<int>(run.threads));
  arena.execute([&] { FlowEngine(run, io).run(); });
}

}  // namespace ggufmill
