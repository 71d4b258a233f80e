#include "pipeline/graph/convert.h"
#include "pipeline/graph/run.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

class SimpleEngine {
 public:
  explicit SimpleEngine(Run& run) : run_(run), scratch_(scratch_bytes(run.plan) / sizeof(float)) {}

  void run() {
    while (const std::optional<SlabBatch> batch = run_.feed.next()) {
      if (run_.state.feeds_no_more()) return;
      if (Status status = carry(*batch); !status) run_.state.fail(ordinal_, step_, status.error());
      ++ordinal_;
    }
  }

 private:
  Status carry(const SlabBatch& batch) {
    step_ = RunState::kRead;
    BOOST_OUTCOME_TRY(auto flight, make_flight(batch, ordinal_, run_.work, is_direct(run_.plan)));
    flight->profile = run_.profile;
    run_.budget.try_acquire(batch.cost);  // always there: all of the budget is free, and no batch costs more
    Status status = carry(*flight);
    if (status) run_.state.finished(*flight);
    run_.budget.release(batch.cost);
    return status;
  }

  Status read(Flight& flight) {
    const Leg& first = flight.legs.front();
    const ProfiledStep step(ProfileStep::kRead, flight, first);
    return run_.files.input(*first.work->route).read(flight.source_offset, flight.source);
  }

  Status carry(Flight& flight) {
    BOOST_OUTCOME_TRY(read(flight));
    step_ = RunState::kTiles;
    BOOST_OUTCOME_TRY(load_importance(flight));
    for (std::uint32_t tile = 0; tile < flight.tiles && !run_.state.stopped(); ++tile, ++step_) {
      BOOST_OUTCOME_TRY(convert_tile(flight, tile, scratch_, run_.plan.source.files));
    }
    step_ = RunState::kWrite;
    for (const Leg& leg : flight.legs) {
      BOOST_OUTCOME_TRY(write(flight, leg));
    }
    return ok();
  }

  Status write(const Flight& flight, const Leg& leg) {
    for (std::size_t i = 0; i < leg.work->targets.size() && !run_.state.stopped(); ++i) {
      const ProfiledStep step(ProfileStep::kWrite, flight, leg);
      AtomicFile& output = run_.files.output(*leg.work->targets[i].target);
      BOOST_OUTCOME_TRY(output.write(leg.target_offset(i), leg.target_bytes(i)));
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
