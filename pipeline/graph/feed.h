#pragma once
// The slabs of a run, in the order in which they are processed.

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "pipeline/core/lifetime.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {

// The rows read together: rows of one step, or small whole tensors that are adjacent in a file.
struct SlabBatch {
  std::vector<SlabRows> rows;  // at least one, in the order of the file
  // Total cost, at least the size of a slab unless metrics are needed beside it: batches that are not larger all have
  // the same cost, so that one can reuse the memory of another.
  std::uint64_t cost = 0;
};

// Supplies slabs in the order of the plan or, with a seed, in random order (for tests: the order must not matter). Not
// thread-safe.
class Feed {
 public:
  // A batch costs at most `slab_bytes`, unless a single row costs more. Units for which `wanted` returns false are
  // skipped. `budget`: what batches and metrics may take together. The plan and the layouts of its steps must outlive
  // the feed.
  Feed(GGUFMILL_OUTLIVES_RESULT const Plan& plan, GGUFMILL_OUTLIVES_RESULT std::span<const StepLayout> layouts,
       std::uint64_t slab_bytes, std::uint64_t budget, std::uint64_t shuffle_seed,
       std::function<bool(std::size_t)> wanted);
  Feed(GGUFMILL_OUTLIVES_RESULT const Plan& plan, GGUFMILL_OUTLIVES_RESULT std::span<const StepLayout> layouts,
       std::uint64_t slab_bytes, std::uint64_t shuffle_seed, std::function<bool(std::size_t)> wanted)
      : Feed(plan, layouts, slab_bytes, memory_budget(plan.limits), shuffle_seed, std::move(wanted)) {}

  std::optional<SlabBatch> next();

 private:
  // Reading larger tensors together is no faster.
  static constexpr std::uint64_t kSmallTensorBytes = 256 << 10;

  void add_company(SlabBatch& batch);
  std::optional<SlabRows> take();
  std::optional<SlabRows> take_wanted();
  bool joins(const SlabBatch& batch, const SlabRows& rows) const;
  bool is_small_tensor(const SlabRows& rows) const;

  const Plan& plan_;
  const std::span<const StepLayout> layouts_;
  const std::uint64_t slab_bytes_;
  SlabCutter cutter_;
  std::function<bool(std::size_t)> wanted_;
  bool shuffled_;
  std::vector<SlabRows> slabs_;  // the remaining slabs, if shuffled; the last is returned next
  std::optional<SlabRows> ahead_;
};

}  // namespace ggufmill
