// The two ways to convert slabs on the CPU.

#include <tbb/enumerable_thread_specific.h>
#include <tbb/task_group.h>

#include <atomic>

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

  void submit(Slab& slab, std::function<void()> done) noexcept override {
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
  ~ParallelConverter() override {
    // A task that could not be made is counted by TBB all the same: there is no end to wait for. All slabs are done.
    if (lacked_memory_)
      tasks_.release();
    else
      tasks_->wait();
  }

  void submit(Slab& slab, std::function<void()> done) noexcept override {
    if (slab.tiles == 0) return done();
    slab.converted = std::move(done);
    const std::uint64_t ordinal = slab.ordinal;
    const std::uint32_t tiles = slab.tiles;  // the slab is gone with its last tile
    for (std::uint32_t tile = 0; tile < tiles; ++tile) {
      const auto start = [&] { tasks_->run([this, &slab, tile] { convert(slab, tile); }); };
      if (state_.guard(ordinal, RunState::kTiles + tile, start)) continue;
      lacked_memory_ = true;
      end_tile(slab);
    }
  }

 private:
  void convert(Slab& slab, std::uint32_t tile) noexcept {
    if (!state_.skips(slab.ordinal))
      state_.guard(slab.ordinal, RunState::kTiles + tile,
                   [&] { return convert_tile(slab, tile, as_floats(scratch_.local()), kernels_); });
    end_tile(slab);
  }

  static void end_tile(Slab& slab) {
    if (slab.tiles_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const std::function<void()> done = std::move(slab.converted);
    done();
  }

  const Kernels& kernels_;
  RunState& state_;
  tbb::enumerable_thread_specific<Buffer> scratch_;
  std::unique_ptr<tbb::task_group> tasks_ = std::make_unique<tbb::task_group>();  // its destructor may throw
  std::atomic<bool> lacked_memory_{false};
};

}  // namespace

std::unique_ptr<Converter> make_plain_converter(const Plan& plan, const Kernels& kernels, RunState& state) {
  return std::make_unique<PlainConverter>(plan, kernels, state);
}

std::unique_ptr<Converter> make_parallel_converter(const Plan& plan, const Kernels& kernels, RunState& state) {
  return std::make_unique<ParallelConverter>(plan, kernels, state);
}

}  // namespace ggufmill
