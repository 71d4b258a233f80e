#include <tbb/enumerable_thread_specific.h>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <exception>
#include <tuple>
#include <vector>

#include "pipeline/graph/convert.h"
#include "pipeline/graph/run.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

struct TileOfFlight {
  Flight* flight = nullptr;
  std::uint32_t tile = 0;
};

// feed -> read -> cut -> convert -> write -> feed: a ring on which flights go round.
//
// Only feed acquires and releases budget, and it runs one at a time: whatever came back is released before the next
// slab is tried, and with nothing under way all of the budget is free. So some slab can always go on its way. No body
// waits for I/O: read and write hand over to the IoService, whose completions put the flight back on the ring. A flight
// always comes back to feed; after an error the steps just pass it on.
class FlowEngine {
 public:
  FlowEngine(Run& run, IoService& io);

  void run() {
    feed_.try_put(nullptr);
    graph_.wait_for_all();
  }

 private:
  using Feed = tbb::flow::multifunction_node<Flight*, std::tuple<Flight*>>;
  using Async = tbb::flow::async_node<Flight*, Flight*>;
  using Gateway = Async::gateway_type;
  using Cut = tbb::flow::multifunction_node<Flight*, std::tuple<TileOfFlight, Flight*>>;
  using Convert = tbb::flow::multifunction_node<TileOfFlight, std::tuple<Flight*>>;

  void feed(Flight* landed, Feed::output_ports_type& ports);
  void land(Flight* flight);
  Flight* take_off();
  bool read_if_cached(const Flight& flight);
  void read(Flight* flight, Gateway& gateway);
  void cut(Flight* flight, Cut::output_ports_type& ports);
  void convert(TileOfFlight part, Convert::output_ports_type& ports);
  void write(Flight* flight, Gateway& gateway);
  void write_target(Flight* flight, const Leg& leg, std::size_t index, Gateway& gateway);
  void wrote(Flight* flight, const Status& status, Gateway& gateway);

  // Runs `step` of a slab; an error or exception of it becomes the error of the run.
  template <class Step>
  bool guard(std::uint64_t ordinal, std::uint64_t number, Step step);
  // Puts a flight back on the ring at the end of background I/O, from a thread of the IoService.
  void come_back(Flight* flight, Gateway& gateway);

  Run& run_;
  IoService& io_;
  tbb::enumerable_thread_specific<Buffer> scratch_{[this] { return Buffer(scratch_bytes(run_.plan)); }};
  // Only feed touches these.
  std::vector<std::unique_ptr<Flight>> under_way_;
  std::optional<SlabBatch> next_;
  std::uint64_t ordinal_ = 0;

  tbb::flow::graph graph_;
  Feed feed_;
  Async read_;
  Cut cut_;
  Convert convert_;
  Async write_;
};

// Beyond this number of slabs under way more memory only means colder caches: every thread has one at hand, one being
// read and two being written.
std::size_t most_under_way(unsigned threads) { return 4 * std::size_t{threads} + 4; }

FlowEngine::FlowEngine(Run& run, IoService& io)
    : run_(run),
      io_(io),
      feed_(graph_, tbb::flow::serial, [this](Flight* landed, auto& ports) { feed(landed, ports); }),
      read_(graph_, tbb::flow::unlimited, [this](Flight* flight, auto& gateway) { read(flight, gateway); }),
      cut_(graph_, tbb::flow::unlimited, [this](Flight* flight, auto& ports) { cut(flight, ports); }),
      convert_(graph_, tbb::flow::unlimited, [this](TileOfFlight part, auto& ports) { convert(part, ports); }),
      write_(graph_, tbb::flow::unlimited, [this](Flight* flight, auto& gateway) { write(flight, gateway); }) {
  using tbb::flow::make_edge;
  using tbb::flow::output_port;
  make_edge(output_port<0>(feed_), read_);
  make_edge(read_, cut_);
  make_edge(output_port<0>(cut_), convert_);
  make_edge(output_port<1>(cut_), write_);
  make_edge(output_port<0>(convert_), write_);
  make_edge(write_, feed_);
}

template <class Step>
bool FlowEngine::guard(std::uint64_t ordinal, std::uint64_t number, Step step) {
  try {
    const Status status = step();
    if (status) return true;
    run_.state.fail(ordinal, number, status.error());
  } catch (const std::exception& error) {
    run_.state.fail(ordinal, number, unexpected(error));
  }
  return false;
}

void FlowEngine::come_back(Flight* flight, Gateway& gateway) {
  guard(flight->ordinal, RunState::kWrite, [&] { return gateway.try_put(flight), Status(ok()); });
  gateway.release_wait();
}

void FlowEngine::feed(Flight* landed, Feed::output_ports_type& ports) {
  if (landed) land(landed);
  while (Flight* flight = take_off()) std::get<0>(ports).try_put(flight);
}

void FlowEngine::land(Flight* flight) {
  run_.state.finished(*flight);
  const std::uint64_t cost = flight->cost;
  std::erase_if(under_way_, [&](const auto& other) { return other.get() == flight; });  // its memory first
  run_.budget.release(cost);
}

// The next slab with its memory; null when none is left or there is no budget for it now.
Flight* FlowEngine::take_off() {
  if (run_.state.feeds_no_more() || under_way_.size() >= most_under_way(run_.threads)) return nullptr;
  if (!next_) next_ = run_.feed.next();
  if (!next_ || !run_.budget.try_acquire(next_->cost)) return nullptr;
  const bool made = guard(ordinal_, RunState::kRead, [&]() -> Status {
    BOOST_OUTCOME_TRY(auto flight, make_flight(*next_, ordinal_, run_.work, is_direct(run_.plan)));
    flight->profile = run_.profile;
    under_way_.push_back(std::move(flight));
    return ok();
  });
  if (!made) run_.budget.release(next_->cost);
  next_.reset();
  ++ordinal_;
  return made ? under_way_.back().get() : nullptr;
}

// What is in the page cache is copied by the thread that is likely to convert it next.
bool FlowEngine::read_if_cached(const Flight& flight) {
  const Leg& first = flight.legs.front();
  const Profile::Clock::time_point start = Profile::Clock::now();
  if (!run_.files.input(*first.work->route).read_if_cached(flight.source_offset, flight.source)) return false;
  if (run_.profile) run_.profile->worked(ProfileStep::kRead, flight, first, start);
  return true;
}

void FlowEngine::read(Flight* flight, Gateway& gateway) {
  if (run_.state.skips(flight->ordinal)) return void(gateway.try_put(flight));
  const Leg& first = flight->legs.front();
  if (read_if_cached(*flight)) return void(gateway.try_put(flight));
  gateway.reserve_wait();
  const auto done = [this, flight, &gateway, start = Profile::Clock::now()](const Status& status) {
    if (run_.profile) run_.profile->transferred(ProfileStep::kRead, *flight, flight->legs.front(), start);
    guard(flight->ordinal, RunState::kRead, [&] { return status; });
    come_back(flight, gateway);
  };
  const bool started = guard(flight->ordinal, RunState::kRead, [&] {
    io_.read(run_.files.input(*first.work->route), flight->source_offset, flight->source, done);
    return Status(ok());
  });
  if (!started) come_back(flight, gateway);
}

void FlowEngine::cut(Flight* flight, Cut::output_ports_type& ports) {
  const bool go_on = !run_.state.skips(flight->ordinal) &&
                     guard(flight->ordinal, RunState::kTiles, [&] { return load_importance(*flight); });
  if (!go_on || flight->tiles == 0) return void(std::get<1>(ports).try_put(flight));
  const std::uint32_t tiles = flight->tiles;  // the flight is gone with its last tile
  for (std::uint32_t tile = 0; tile < tiles; ++tile) std::get<0>(ports).try_put({flight, tile});
}

void FlowEngine::convert(TileOfFlight part, Convert::output_ports_type& ports) {
  Flight& flight = *part.flight;
  if (!run_.state.skips(flight.ordinal))
    guard(flight.ordinal, RunState::kTiles + part.tile, [&] {
      const std::span<std::byte> scratch = scratch_.local().span();
      return convert_tile(flight, part.tile, {reinterpret_cast<float*>(scratch.data()), scratch.size() / sizeof(float)},
                          run_.plan.source.files);
    });
  if (flight.tiles_left.fetch_sub(1, std::memory_order_acq_rel) == 1) std::get<0>(ports).try_put(&flight);
}

void FlowEngine::write(Flight* flight, Gateway& gateway) {
  if (run_.state.spoiled(flight->ordinal)) return void(gateway.try_put(flight));
  gateway.reserve_wait();
  // The flight is gone with its last write: the loops must not look at it after that.
  const std::size_t legs = flight->legs.size();
  for (std::size_t l = 0; l < legs; ++l) {
    const Leg& leg = flight->legs[l];
    const std::size_t targets = leg.work->targets.size();
    for (std::size_t i = 0; i < targets; ++i) write_target(flight, leg, i, gateway);
  }
}

void FlowEngine::write_target(Flight* flight, const Leg& leg, std::size_t index, Gateway& gateway) {
  const bool started = guard(flight->ordinal, RunState::kWrite, [&] {
    io_.write(run_.files.output(*leg.work->targets[index].target), leg.target_offset(index), leg.target_bytes(index),
              [this, flight, &leg, &gateway, start = Profile::Clock::now()](const Status& status) {
                if (run_.profile) run_.profile->transferred(ProfileStep::kWrite, *flight, leg, start);
                wrote(flight, status, gateway);
              });
    return Status(ok());
  });
  if (!started) wrote(flight, ok(), gateway);
}

void FlowEngine::wrote(Flight* flight, const Status& status, Gateway& gateway) {
  guard(flight->ordinal, RunState::kWrite, [&] { return status; });
  if (flight->writes_left.fetch_sub(1, std::memory_order_acq_rel) == 1) come_back(flight, gateway);
}

}  // namespace

void run_flow(Run& run, IoService& io) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, run.threads);
  tbb::task_arena arena(static_cast<int>(run.threads));
  arena.execute([&] { FlowEngine(run, io).run(); });
}

}  // namespace ggufmill
