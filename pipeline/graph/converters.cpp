// The two ways to convert slabs on the CPU.

#include <tbb/enumerable_thread_specific.h>
#include <tbb/task_group.h>

#include "pipeline/graph/convert.h"

namespace ggufmill {
namespace {

std::span<float> as_floats(const Buffer& buffer) {
  return {reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float)};
}

class PlainConverter final : public Converter {
 public:
  PlainConverter(const Plan& plan, const Kernels& kernels, RunState& state)
      : kernels_(kernels), state_(state), scratch_(scratch_bytes(plan)) {}

  void submit(Slab& slab, std::function<void()> done) override {
    for (std::uint32_t tile = 0; tile < slab.tiles && !state_.stopped(); ++tile)
      if (!state_.guard(slab.ordinal, RunState::kTiles + tile,
                        [&] { return convert_tile(slab, tile, as_floats(scratch_), kernels_); }))
        break;
    done();
  }

 private:
  const Kernels& kernels_;
  RunState& state_;
  const Buffer scratch_;
};

class ParallelConverter final : public Converter {
 public:
  ParallelConverter(const Plan& plan, const Kernels& kernels, RunState& state)
      : kernels_(kernels), state_(state), scratch_([&plan] { return Buffer(scratch_bytes(plan)); }) {}
  ~ParallelConverter() override { tasks_->wait(); }

  void submit(Slab& slab, std::function<void()> done) override {
    if (slab.tiles == 0) return done();
    const auto shared = std::make_shared<const std::function<void()>>(std::move(done));
    const std::uint32_t tiles = slab.tiles;  // the slab is gone with its last tile
    for (std::uint32_t tile = 0; tile < tiles; ++tile)
      tasks_->run([this, &slab, tile, shared] { convert(slab, tile, *shared); });
  }

 private:
  void convert(Slab& slab, std::uint32_t tile, const std::function<void()>& done) {
    if (!state_.skips(slab.ordinal))
      state_.guard(slab.ordinal, RunState::kTiles + tile,
                   [&] { return convert_tile(slab, tile, as_floats(scratch_.local()), kernels_); });
    if (slab.tiles_left.fetch_sub(1, std::memory_order_acq_rel) == 1) done();
  }

  const Kernels& kernels_;
  RunState& state_;
  tbb::enumerable_thread_specific<Buffer> scratch_;
  const std::unique_ptr<tbb::task_group> tasks_ = std::make_unique<tbb::task_group>();  // its destructor may throw
};

}  // namespace

std::unique_ptr<Converter> make_plain_converter(const Plan& plan, const Kernels& kernels, RunState& state) {
  return std::make_unique<PlainConverter>(plan, kernels, state);
}

std::unique_ptr<Converter> make_parallel_converter(const Plan& plan, const Kernels& kernels, RunState& state) {
  return std::make_unique<ParallelConverter>(plan, kernels, state);
}

}  // namespace ggufmill
