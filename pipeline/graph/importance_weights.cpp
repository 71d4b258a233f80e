#include "pipeline/graph/importance_weights.h"

#include <span>

#include "pipeline/core/byte_order.h"
#include "pipeline/graph/slab.h"

namespace ggufmill {
namespace {

void swap_floats(std::vector<float>& numbers) { swap_words(sizeof(float), std::as_writable_bytes(std::span(numbers))); }

Status make_weights(MatrixWeights& weights) {
  if (weights.ranges.sums.big_endian) swap_floats(weights.values);
  if (weights.ranges.counts.big_endian) swap_floats(weights.counts);
  return weights.importance->to_weights(weights.matrix, weights.counts, weights.values);
}

}  // namespace

ImportanceWeights::Found ImportanceWeights::find(const std::shared_ptr<const Importance>& importance,
                                                 std::uint64_t matrix) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<MatrixWeights>& known =
      known_[{importance->fingerprint, importance->columns, matrix % importance->matrices}];
  if (auto weights = known.lock()) return {weights, false};
  auto weights = std::make_shared<MatrixWeights>();
  weights->importance = importance;
  weights->matrix = matrix;
  weights->ranges = importance->ranges(matrix);
  weights->values.resize(weights->ranges.sums.bytes / sizeof(float));
  weights->counts.resize(weights->ranges.counts.bytes / sizeof(float));
  known = weights;
  return {weights, true};
}

Status ImportanceWeights::finish_reads(Slab& slab) {
  for (const auto& weights : slab.weights_read) {
    BOOST_OUTCOME_TRY(make_weights(*weights));
  }
  return ok();
}

bool ImportanceWeights::waits(Slab& slab) {
  for (const SlabPart& part : slab.parts)
    for (const auto& weights : part.importance)
      if (!weights->ready) return weights->waiting.push_back(&slab), true;
  return false;
}

std::vector<Slab*> ImportanceWeights::ready_slabs(Slab& slab) {
  const std::scoped_lock lock(mutex_);
  std::vector<Slab*> asking{&slab}, ready;
  for (const auto& weights : slab.weights_read) {
    weights->ready = true;
    asking.insert(asking.end(), weights->waiting.begin(), weights->waiting.end());
    weights->waiting.clear();
  }
  for (Slab* each : asking)
    if (!waits(*each)) ready.push_back(each);
  return ready;
}

}  // namespace ggufmill
