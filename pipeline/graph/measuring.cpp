#include "pipeline/graph/measuring.h"

#include <algorithm>

#include "pipeline/graph/run_kernel.h"

namespace ggufmill {
namespace {

// Values that are decoded and compared at a time: with those they stand for they stay in a core's L1 or L2 cache.
constexpr std::uint64_t kAtOnce = 8 << 10;

}  // namespace

Status measure_error(const TargetWork& target, const EncodedRows& encoded, std::span<float> scratch) {
  const std::uint64_t columns = encoded.columns, step = std::max<std::uint64_t>(kAtOnce / columns, 1);
  DifferenceSums sums;
  for (std::uint64_t row = 0; row < encoded.rows; row += step) {
    const std::uint64_t rows = std::min(step, encoded.rows - row);
    const std::span<float> decoded = scratch.first(rows * columns);
    const ggufmill_call call{encoded.bytes.data() + row * target.row_bytes, decoded.data(), rows, columns, nullptr};
    BOOST_OUTCOME_TRY(run_kernel(target.decode, call, target.tensor->name));
    sums.add_rows(encoded.values.subspan(row * columns, rows * columns), decoded, columns, encoded.weights);
  }
  target.measure->add_error(sums, encoded.rows);
  return ok();
}

RunMeasures::RunMeasures(const Plan& plan, std::vector<RouteWork>& work) {
  if (!plan.is_reported() && !plan.report.error) return;
  for (RouteWork& route : work) {
    std::deque<TargetMeasure>& measures = routes_.emplace_back();
    for (TargetWork& target : route.targets) target.measure = &measures.emplace_back(route.route->shape.rows());
  }
}

std::vector<std::vector<TargetResult>> RunMeasures::results() const {
  std::vector<std::vector<TargetResult>> results;
  for (const std::deque<TargetMeasure>& route : routes_) {
    std::vector<TargetResult>& targets = results.emplace_back();
    for (const TargetMeasure& measure : route) targets.push_back(measure.result());
  }
  return results;
}

}  // namespace ggufmill
