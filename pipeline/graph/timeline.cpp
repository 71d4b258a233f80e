#include "pipeline/graph/timeline.h"

#include <algorithm>

namespace ggufmill {

void Timeline::double_part() {
  for (std::size_t i = 0; i < kParts / 2; ++i) sums_[i] = sums_[2 * i] + sums_[2 * i + 1];
  std::fill(sums_.begin() + kParts / 2, sums_.end(), 0.0);
  part_ *= 2;
}

void Timeline::add(double begin, double end) {
  if (!(begin >= 0 && begin < end)) return;
  while (end >= part_ * kParts) double_part();
  const auto first = static_cast<std::size_t>(begin / part_), last = static_cast<std::size_t>(end / part_);
  for (std::size_t i = first; i <= last; ++i) {
    const double from = static_cast<double>(i) * part_;
    sums_[i] += std::max(std::min(end, from + part_) - std::max(begin, from), 0.0);
  }
}

void Timeline::add(const Timeline& other) {
  Timeline same = other;
  while (same.part_ < part_) same.double_part();
  while (part_ < same.part_) double_part();
  for (std::size_t i = 0; i < kParts; ++i) sums_[i] += same.sums_[i];
}

double Timeline::between(double begin, double end) const {
  double sum = 0;
  for (auto i = static_cast<std::size_t>(std::max(begin, 0.0) / part_); i < kParts; ++i) {
    const double from = static_cast<double>(i) * part_;
    if (from >= end) break;
    sum += sums_[i] * std::max(std::min(end, from + part_) - std::max(begin, from), 0.0) / part_;
  }
  return sum;
}

}  // namespace ggufmill
