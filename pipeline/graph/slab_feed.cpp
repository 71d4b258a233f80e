#include "pipeline/graph/slab_feed.h"

#include <algorithm>
#include <random>

namespace ggufmill {

SlabFeed::SlabFeed(const Plan& plan, std::uint64_t slab_bytes, std::uint64_t shuffle_seed)
    : cutter_(plan, slab_bytes), shuffled_(shuffle_seed != 0) {
  if (!shuffled_) return;
  slabs_ = cut_slabs(plan, slab_bytes);
  std::shuffle(slabs_.begin(), slabs_.end(), std::mt19937_64(shuffle_seed));
}

std::optional<Slab> SlabFeed::next() {
  if (!shuffled_) return cutter_.next();
  if (slabs_.empty()) return std::nullopt;
  const Slab slab = slabs_.back();
  slabs_.pop_back();
  return slab;
}

}  // namespace ggufmill
