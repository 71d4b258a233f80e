#include "pipeline/graph/convert.h"

namespace ggufmill {
namespace {

class PlainEngine {
 public:
  explicit PlainEngine(Run& run) : run_(run), converter_(make_plain_converter(run.steps, run.kernels, run.state)) {}

  void run() {
    while (const std::optional<SlabBatch> batch = run_.feed.next()) {
      if (run_.state.feeds_no_more()) return;
      Metrics::Used metrics;
      acquire(run_, *batch, ordinal_, metrics);  // always succeeds: all is free that no slab uses, and that suffices
      process(*batch, metrics);
      run_.metrics.release(batch->cost, metrics);
      ++ordinal_;
    }
  }

 private:
  void process(const SlabBatch& batch, const Metrics::Used& metrics) {
    std::unique_ptr<Slab> slab;
    const bool read = run_.state.guard(ordinal_, RunState::kRead, [&]() -> Status {
      BOOST_OUTCOME_TRY(slab, make_slab(batch, ordinal_, run_.steps, weights_, is_direct(run_.plan)));
      slab->profile = run_.profile;
      slab->metrics = metrics;
      return read_all(*slab);
    });
    if (!read) return;
    bool must_make = false;
    while (Metric* metric = run_.metrics.wait_for(*slab, must_make)) {
      make_metric(run_, converter_->for_each(), *metric);
      run_.metrics.made(*metric);
    }
    converter_->submit(*slab, [] {});
    if (run_.state.spoiled(ordinal_)) return;
    run_.state.sum_up(*slab);
    if (run_.state.guard(ordinal_, RunState::kWrite, [&] { return write_all(*slab); })) run_.state.finished(*slab);
    last_weights_ = std::move(slab->parts.back().importance);
  }

  Status read_all(Slab& slab) {
    {
      const ProfiledStep profiled(ProfileStep::kRead, slab, slab.parts.front());
      for (const SlabRead& read : slab.reads) {
        BOOST_OUTCOME_TRY(run_.sources.of(read).read(read.offset, read.into));
      }
    }
    BOOST_OUTCOME_TRY(weights_.finish_reads(slab));
    weights_.ready_slabs(slab);  // no other slab is in flight, so it waits for nothing
    return ok();
  }

  Status write_all(const Slab& slab) {
    for (const SlabPart& part : slab.parts)
      for (std::size_t i = 0; i < part.encoded.size(); ++i)
        for (const Place& place : part.step->encodings[i].encoding->places) {
          if (run_.state.stopped()) return ok();
          const ProfiledStep profiled(ProfileStep::kWrite, slab, part);
          BOOST_OUTCOME_TRY(run_.store.write(run_.state.file_of(place), place.offset + part.offset_in_place(i),
                                             part.encoded_bytes(i)));
        }
    return ok();
  }

  Run& run_;
  std::unique_ptr<Converter> converter_;
  ImportanceWeights weights_;
  std::vector<std::shared_ptr<MatrixWeights>> last_weights_;  // usually needed by the next slab as well
  std::uint64_t ordinal_ = 0;
};

}  // namespace

void run_plain(Run& run) { PlainEngine(run).run(); }

}  // namespace ggufmill
