#pragma once
// The slabs of a run in the order they are worked on.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "pipeline/plan/slabs.h"

namespace ggufmill {

// What is read at once: rows of one step, or small whole tensors that lie side by side in a file.
struct SlabBatch {
  std::vector<SlabRows> rows;  // at least one, in the order of the file
  std::uint64_t cost = 0;      // of all, at least the size of a slab: batches that are not larger all cost the same, so
                               // that one can take over the memory of another
};

// The order is that of the plan, or with a seed any other (tests: the order must not matter). Not thread-safe.
class Feed {
 public:
  // A batch costs at most `slab_bytes`, but for a single row that costs more. Units for which `wanted` is false are
  // left out.
  Feed(const Plan& plan, std::uint64_t slab_bytes, std::uint64_t shuffle_seed, std::function<bool(std::size_t)> wanted);

  std::optional<SlabBatch> next();

 private:
  // Larger tensors are read no faster together.
  static constexpr std::uint64_t kSmallTensorBytes = 256 << 10;

  void add_company(SlabBatch& batch);
  std::optional<SlabRows> take();
  std::optional<SlabRows> take_wanted();
  bool joins(const SlabBatch& batch, const SlabRows& rows) const;
  bool is_small_tensor(const SlabRows& rows) const;

  const Plan& plan_;
  const std::uint64_t slab_bytes_;
  SlabCutter cutter_;
  std::function<bool(std::size_t)> wanted_;
  bool shuffled_;
  std::vector<SlabRows> slabs_;  // those left, when shuffled; the last is the next
  std::optional<SlabRows> ahead_;
};

}  // namespace ggufmill
