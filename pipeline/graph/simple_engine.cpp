#include "pipeline/graph/convert.h"
#include "pipeline/graph/run.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

class SimpleEngine {
 public:
  explicit SimpleEngine(Run& run) : run_(run), scratch_(scratch_bytes(run.plan) / sizeof(float)) {}

  void run() {
    while (const std::optional<Slab> slab = run_.feed.next()) {
      if (run_.state.feeds_no_more()) return;
      if (Status status = carry(*slab); !status) run_.state.fail(ordinal_, step_, status.error());
      ++ordinal_;
    }
  }

 private:
  Status carry(const Slab& slab) {
    step_ = RunState::kRead;
    const RouteWork& work = run_.work[slab.route];
    BOOST_OUTCOME_TRY(auto flight, make_flight(slab, ordinal_, work, is_direct(run_.plan)));
    flight->profile = run_.profile;
    run_.budget.try_acquire(slab.cost);  // always there: all of the budget is free, and no slab costs more
    Status status = carry(*flight);
    if (status) run_.state.finished(*flight);
    run_.budget.release(slab.cost);
    return status;
  }

  Status read(Flight& flight) {
    const ProfiledStep step(ProfileStep::kRead, flight);
    const Route& route = *flight.work->route;
    return run_.files.input(route).read(route.source.offset + flight.slab.first_byte, flight.source.span());
  }

  Status carry(Flight& flight) {
    BOOST_OUTCOME_TRY(read(flight));
    step_ = RunState::kTiles;
    BOOST_OUTCOME_TRY(load_importance(flight));
    for (std::uint32_t tile = 0; tile < flight.tiles && !run_.state.stopped(); ++tile, ++step_) {
      BOOST_OUTCOME_TRY(convert_tile(flight, tile, scratch_, run_.plan.source.files));
    }
    step_ = RunState::kWrite;
    for (std::size_t i = 0; i < flight.work->targets.size() && !run_.state.stopped(); ++i) {
      const ProfiledStep step(ProfileStep::kWrite, flight);
      AtomicFile& output = run_.files.output(*flight.work->targets[i].target);
      BOOST_OUTCOME_TRY(output.write(flight.target_offset(i), flight.target_bytes(i)));
    }
    return ok();
  }

  Run& run_;
  std::vector<float> scratch_;
  std::uint64_t ordinal_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace

void run_simple(Run& run) { SimpleEngine(run).run(); }

}  // namespace ggufmill
