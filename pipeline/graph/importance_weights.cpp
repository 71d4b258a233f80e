#include "pipeline/graph/importance_weights.h"

#include <span>
#include <utility>

#include "pipeline/core/byte_order.h"
#include "pipeline/graph/slab.h"

namespace ggufmill {
namespace {

void swap_floats(std::vector<float>& numbers) { swap_words(sizeof(float), std::as_writable_bytes(std::span(numbers))); }

Status make_weights(MatrixWeights& weights) {
  for (std::size_t i = 0; i < weights.numbers.size(); ++i) {
    if (weights.ranges[i].sums.big_endian) swap_floats(weights.numbers[i].sums);
    if (weights.ranges[i].counts.big_endian) swap_floats(weights.numbers[i].counts);
  }
  BOOST_OUTCOME_TRY(weights.values, weights.importance->to_weights(weights.matrix, std::exchange(weights.numbers, {})));
  return ok();
}

}  // namespace

ImportanceWeights::Found ImportanceWeights::find(const std::shared_ptr<const Importance>& importance,
                                                 std::uint64_t matrix) {
  const std::scoped_lock lock(mutex_);
  if (known_.size() >= sweep_at_) {
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * known_.size() + 16;
  }
  std::weak_ptr<MatrixWeights>& known =
      known_[{importance->fingerprint, importance->columns, matrix % importance->matrices}];
  if (auto weights = known.lock()) return {weights, false};
  auto weights = std::make_shared<MatrixWeights>();
  weights->importance = importance;
  weights->matrix = matrix;
  weights->ranges = importance->ranges(matrix);
  for (const Importance::Ranges& ranges : weights->ranges) {
    ImportanceNumbers& numbers = weights->numbers.emplace_back();
    numbers.sums.resize(ranges.sums.bytes / sizeof(float));
    numbers.counts.resize(ranges.counts.bytes / sizeof(float));
  }
  known = weights;
  return {weights, true};
}

Status ImportanceWeights::finish_reads(Slab& slab) {
  for (const auto& weights : slab.weights_read) {
    BOOST_OUTCOME_TRY(make_weights(*weights));
  }
  return ok();
}

bool ImportanceWeights::waits(Slab& slab) noexcept {
  for (const SlabPart& part : slab.parts)
    for (const auto& weights : part.importance)
      if (!weights->ready) {
        slab.next = std::exchange(weights->waiting, &slab);
        return true;
      }
  return false;
}

Slab* ImportanceWeights::ready_slabs(Slab& slab) noexcept {
  const std::scoped_lock lock(mutex_);
  Slab *asking = &slab, *ready = nullptr;
  slab.next = nullptr;
  for (const auto& weights : slab.weights_read) {
    weights->ready = true;
    while (Slab* waiting = weights->waiting) {
      weights->waiting = waiting->next;
      waiting->next = std::exchange(asking, waiting);
    }
  }
  while (Slab* each = asking) {
    asking = each->next;
    if (!waits(*each)) each->next = std::exchange(ready, each);
  }
  return ready;
}

}  // namespace ggufmill
