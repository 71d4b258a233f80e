#pragma once
// The slabs of a run in the order they are worked on.

#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/plan/slabs.h"

namespace ggufmill {

// Slabs that are read at once: one, or small whole tensors that lie side by side in a file.
struct SlabBatch {
  std::vector<Slab> slabs;  // at least one, in the order of the file
  std::uint64_t cost = 0;   // of all, and what they are given: alike for all batches that are not larger, so that one
                            // takes over the memory of another as it is, without a page more or less
};

// The order is that of the source files, or with a seed any other (tests: the order must not matter). Not thread-safe.
class SlabFeed {
 public:
  // A batch costs at most `slab_bytes`, but for that of a single row that costs more.
  SlabFeed(const Plan& plan, std::uint64_t slab_bytes, std::uint64_t shuffle_seed);

  std::optional<SlabBatch> next();

 private:
  // Larger tensors gain nothing from company.
  static constexpr std::uint64_t kSmallTensorBytes = 256 << 10;

  void add_company(SlabBatch& batch);
  std::optional<Slab> take();
  bool joins(const SlabBatch& batch, const Slab& slab) const;
  bool is_small_tensor(const Slab& slab) const;

  const Plan& plan_;
  const std::uint64_t slab_bytes_;
  SlabCutter cutter_;
  bool shuffled_;
  std::vector<Slab> slabs_;  // those left, when shuffled; the last is the next
  std::optional<Slab> ahead_;
};

}  // namespace ggufmill
