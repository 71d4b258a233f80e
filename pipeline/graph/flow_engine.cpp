#include <tbb/enumerable_thread_specific.h>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <exception>
#include <tuple>

#include "pipeline/graph/convert.h"
#include "pipeline/graph/run.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

using FlightPtr = std::shared_ptr<Flight>;

struct TileOfFlight {
  FlightPtr flight;
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
  using Feed = tbb::flow::multifunction_node<FlightPtr, std::tuple<FlightPtr>>;
  using Async = tbb::flow::async_node<FlightPtr, FlightPtr>;
  using Cut = tbb::flow::multifunction_node<FlightPtr, std::tuple<TileOfFlight, FlightPtr>>;
  using Convert = tbb::flow::multifunction_node<TileOfFlight, std::tuple<FlightPtr>>;

  void feed(const FlightPtr& landed, Feed::output_ports_type& ports);
  FlightPtr take_off();
  void read(const FlightPtr& flight, Async::gateway_type& gateway);
  void cut(const FlightPtr& flight, Cut::output_ports_type& ports);
  void convert(const TileOfFlight& part, Convert::output_ports_type& ports);
  void write(const FlightPtr& flight, Async::gateway_type& gateway);
  void write_target(const FlightPtr& flight, std::size_t index, Async::gateway_type& gateway);
  void wrote(const FlightPtr& flight, const Status& status, Async::gateway_type& gateway);

  // Runs `step` of a slab; an error or exception of it becomes the error of the run.
  template <class Step>
  bool guard(std::uint64_t ordinal, std::uint64_t number, Step step);

  Run& run_;
  IoService& io_;
  tbb::enumerable_thread_specific<Buffer> scratch_{[] { return Buffer(kTileBytes); }};
  // Only feed touches these.
  std::optional<Slab> next_;
  std::uint64_t ordinal_ = 0;
  std::uint64_t under_way_ = 0;

  tbb::flow::graph graph_;
  Feed feed_;
  Async read_;
  Cut cut_;
  Convert convert_;
  Async write_;
};

// Beyond this number of slabs under way more memory only means colder caches: every thread has one at hand, one being
// read and two being written.
std::uint64_t most_under_way(unsigned threads) { return 4 * std::uint64_t{threads} + 4; }

FlowEngine::FlowEngine(Run& run, IoService& io)
    : run_(run),
      io_(io),
      feed_(graph_, tbb::flow::serial, [this](const FlightPtr& landed, auto& ports) { feed(landed, ports); }),
      read_(graph_, tbb::flow::unlimited, [this](const FlightPtr& flight, auto& gateway) { read(flight, gateway); }),
      cut_(graph_, tbb::flow::unlimited, [this](const FlightPtr& flight, auto& ports) { cut(flight, ports); }),
      convert_(graph_, tbb::flow::unlimited, [this](const TileOfFlight& part, auto& ports) { convert(part, ports); }),
      write_(graph_, tbb::flow::unlimited, [this](const FlightPtr& flight, auto& gateway) { write(flight, gateway); }) {
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

void FlowEngine::feed(const FlightPtr& landed, Feed::output_ports_type& ports) {
  if (landed) {
    run_.state.finished(*landed);
    landed->land();
    run_.budget.release(landed->slab.cost);
    --under_way_;
  }
  while (const FlightPtr flight = take_off()) std::get<0>(ports).try_put(flight);
}

// The next slab with its memory; null when none is left or there is no budget for it now.
FlightPtr FlowEngine::take_off() {
  if (run_.state.feeds_no_more() || under_way_ >= most_under_way(run_.threads)) return nullptr;
  if (!next_) next_ = run_.feed.next();
  if (!next_ || !run_.budget.try_acquire(next_->cost)) return nullptr;
  FlightPtr flight;
  const bool made = guard(ordinal_, RunState::kRead, [&]() -> Status {
    BOOST_OUTCOME_TRY(flight, make_flight(*next_, ordinal_, run_.work[next_->route]));
    return ok();
  });
  if (!made) run_.budget.release(next_->cost);
  next_.reset();
  ++ordinal_;
  under_way_ += made;
  return flight;
}

void FlowEngine::read(const FlightPtr& flight, Async::gateway_type& gateway) {
  if (run_.state.skips(flight->ordinal)) return void(gateway.try_put(flight));
  const Route& route = *flight->work->route;
  gateway.reserve_wait();
  const auto done = [this, flight, &gateway](const Status& status) {
    guard(flight->ordinal, RunState::kRead, [&] { return status; });
    guard(flight->ordinal, RunState::kRead, [&] { return gateway.try_put(flight), Status(ok()); });
    gateway.release_wait();
  };
  const bool started = guard(flight->ordinal, RunState::kRead, [&] {
    io_.read(run_.files.input(route), route.source.offset + flight->slab.first_byte, flight->source.span(), done);
    return Status(ok());
  });
  if (!started) done(ok());
}

void FlowEngine::cut(const FlightPtr& flight, Cut::output_ports_type& ports) {
  const bool go_on = !run_.state.skips(flight->ordinal) &&
                     guard(flight->ordinal, RunState::kTiles, [&] { return load_importance(*flight); });
  if (!go_on || flight->tiles == 0) return void(std::get<1>(ports).try_put(flight));
  for (std::uint32_t tile = 0; tile < flight->tiles; ++tile) std::get<0>(ports).try_put({flight, tile});
}

void FlowEngine::convert(const TileOfFlight& part, Convert::output_ports_type& ports) {
  Flight& flight = *part.flight;
  if (!run_.state.skips(flight.ordinal))
    guard(flight.ordinal, RunState::kTiles + part.tile, [&] {
      Buffer& scratch = scratch_.local();
      return convert_tile(flight, part.tile, {reinterpret_cast<float*>(scratch.data()), scratch.size() / sizeof(float)},
                          run_.plan.source.files);
    });
  if (flight.tiles_left.fetch_sub(1, std::memory_order_acq_rel) == 1) std::get<0>(ports).try_put(part.flight);
}

void FlowEngine::write(const FlightPtr& flight, Async::gateway_type& gateway) {
  if (run_.state.spoiled(flight->ordinal)) return void(gateway.try_put(flight));
  gateway.reserve_wait();
  for (std::size_t i = 0; i < flight->work->targets.size(); ++i) write_target(flight, i, gateway);
}

void FlowEngine::write_target(const FlightPtr& flight, std::size_t index, Async::gateway_type& gateway) {
  const bool started = guard(flight->ordinal, RunState::kWrite, [&] {
    io_.write(run_.files.output(*flight->work->targets[index].target), flight->target_offset(index),
              flight->target_bytes(index),
              [this, flight, &gateway](const Status& status) { wrote(flight, status, gateway); });
    return Status(ok());
  });
  if (!started) wrote(flight, ok(), gateway);
}

void FlowEngine::wrote(const FlightPtr& flight, const Status& status, Async::gateway_type& gateway) {
  guard(flight->ordinal, RunState::kWrite, [&] { return status; });
  if (flight->writes_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  guard(flight->ordinal, RunState::kWrite, [&] { return gateway.try_put(flight), Status(ok()); });
  gateway.release_wait();
}

}  // namespace

void run_flow(Run& run, IoService& io) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, run.threads);
  tbb::task_arena arena(static_cast<int>(run.threads));
  arena.execute([&] { FlowEngine(run, io).run(); });
}

}  // namespace ggufmill
