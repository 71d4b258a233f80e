#pragma once
// The slabs of a run in the order they are worked on.

#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/plan/slabs.h"

namespace ggufmill {

// That of the source files, or with a seed any other (tests: the order must not matter). Not thread-safe.
class SlabFeed {
 public:
  SlabFeed(const Plan& plan, std::uint64_t slab_bytes, std::uint64_t shuffle_seed);

  std::optional<Slab> next();

 private:
  SlabCutter cutter_;
  bool shuffled_;
  std::vector<Slab> slabs_;  // those left, when shuffled; the last is the next
};

}  // namespace ggufmill
