#include "pipeline/report/target_measure.h"

namespace ggufmill {

void TargetMeasure::add_error(const DifferenceSums& sums, std::uint64_t rows) {
  const std::lock_guard lock(mutex_);
  if (!sums_) sums_ = std::make_unique<DifferenceSums>();
  sums_->add(sums);
  rows_left_ -= rows;
  if (rows_left_ != 0) return;
  error_ = sums_->rounded();
  sums_.reset();
}

TargetResult TargetMeasure::result() const { return {static_cast<double>(nanoseconds_) / 1e9, error_}; }

}  // namespace ggufmill
