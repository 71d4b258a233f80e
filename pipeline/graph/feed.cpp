#include "pipeline/graph/feed.h"

#include <algorithm>
#include <random>
#include <utility>

namespace ggufmill {

Feed::Feed(const Plan& plan, std::span<const StepLayout> layouts, std::uint64_t slab_bytes, std::uint64_t budget,
           std::uint64_t shuffle_seed, std::function<bool(std::size_t)> wanted)
    : plan_(plan),
      layouts_(layouts),
      slab_bytes_(slab_bytes),
      cutter_(plan, layouts, slab_bytes, budget),
      wanted_(std::move(wanted)),
      shuffled_(shuffle_seed != 0) {
  if (!shuffled_) return;
  while (const std::optional<SlabRows> slab = take_wanted()) slabs_.push_back(*slab);
  std::shuffle(slabs_.begin(), slabs_.end(), std::mt19937_64(shuffle_seed));
}

std::optional<SlabBatch> Feed::next() {
  std::optional<SlabRows> first = ahead_ ? std::exchange(ahead_, std::nullopt) : take();
  if (!first) return std::nullopt;
  SlabBatch batch{{*first}, first->cost};
  if (is_small_tensor(*first)) add_company(batch);
  if (layouts_[first->step].metrics().empty()) batch.cost = std::max(batch.cost, slab_bytes_);
  return batch;
}

void Feed::add_company(SlabBatch& batch) {
  while ((ahead_ = take()) && joins(batch, *ahead_)) {
    batch.rows.push_back(*ahead_);
    batch.cost += ahead_->cost;
  }
}

std::optional<SlabRows> Feed::take_wanted() {
  std::optional<SlabRows> slab = cutter_.next();
  while (slab && !wanted_(slab->unit)) {
    cutter_.skip_unit();
    slab = cutter_.next();
  }
  return slab;
}

std::optional<SlabRows> Feed::take() {
  if (!shuffled_) return take_wanted();
  if (slabs_.empty()) return std::nullopt;
  const SlabRows slab = slabs_.back();
  slabs_.pop_back();
  return slab;
}

bool Feed::is_small_tensor(const SlabRows& rows) const {
  const Step& step = plan_.steps[rows.step];
  return !step.compared && step.expression->as_extent() && layouts_[rows.step].metrics().empty() &&
         rows.bytes == step.expression->bytes() && rows.bytes <= kSmallTensorBytes;
}

// The gap between the two tensors is read as well. It must fit into the page rounding of the preceding tensor, so that
// the batch needs no more memory than its parts. Values have the same layout in memory as in the file. They must
// therefore be aligned in the file and also relative to the batch's first tensor, which is aligned in memory even if it
// is not in the file.
bool Feed::joins(const SlabBatch& batch, const SlabRows& rows) const {
  if (!is_small_tensor(rows)) return false;
  const Extent& first = plan_.steps[batch.rows.front().step].expression->extent;
  const Extent& before = plan_.steps[batch.rows.back().step].expression->extent;
  const Extent& next = plan_.steps[rows.step].expression->extent;
  const std::uint32_t alignment = plan_.steps[rows.step].expression->type->alignment();
  return next.source == before.source && next.offset >= before.offset &&
         next.offset - before.offset <= whole_pages(before.bytes) && batch.cost + rows.cost <= slab_bytes_ &&
         next.offset % alignment == 0 && (next.offset - first.offset) % alignment == 0;
}

}  // namespace ggufmill
