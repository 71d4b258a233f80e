#include "pipeline/graph/slab_feed.h"

#include <algorithm>
#include <random>
#include <utility>

namespace ggufmill {
namespace {

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

}  // namespace

SlabFeed::SlabFeed(const Plan& plan, std::uint64_t slab_bytes, std::uint64_t shuffle_seed)
    : plan_(plan), slab_bytes_(slab_bytes), cutter_(plan, slab_bytes), shuffled_(shuffle_seed != 0) {
  if (!shuffled_) return;
  slabs_ = cut_slabs(plan, slab_bytes);
  std::shuffle(slabs_.begin(), slabs_.end(), std::mt19937_64(shuffle_seed));
}

std::optional<SlabBatch> SlabFeed::next() {
  std::optional<Slab> first = ahead_ ? std::exchange(ahead_, std::nullopt) : take();
  if (!first) return std::nullopt;
  SlabBatch batch{{*first}, first->cost};
  if (is_small_tensor(*first)) add_company(batch);
  batch.cost = std::max(batch.cost, slab_bytes_);
  return batch;
}

void SlabFeed::add_company(SlabBatch& batch) {
  while ((ahead_ = take()) && joins(batch, *ahead_)) {
    batch.slabs.push_back(*ahead_);
    batch.cost += ahead_->cost;
  }
}

std::optional<Slab> SlabFeed::take() {
  if (!shuffled_) return cutter_.next();
  if (slabs_.empty()) return std::nullopt;
  const Slab slab = slabs_.back();
  slabs_.pop_back();
  return slab;
}

bool SlabFeed::is_small_tensor(const Slab& slab) const {
  return slab.source_bytes == plan_.routes[slab.route].source.bytes && slab.source_bytes <= kSmallTensorBytes;
}

// What lies between the two is read as well: it must fit into the rounding of the one before to pages, so that the
// memory of a batch is no more than that of its slabs.
bool SlabFeed::joins(const SlabBatch& batch, const Slab& slab) const {
  const Slab& last = batch.slabs.back();
  const TensorSource& before = plan_.routes[last.route].source;
  const TensorSource& source = plan_.routes[slab.route].source;
  return is_small_tensor(slab) && source.file == before.file && source.offset >= before.offset &&
         source.offset - before.offset <= whole_pages(before.bytes) && batch.cost + slab.cost <= slab_bytes_;
}

}  // namespace ggufmill
