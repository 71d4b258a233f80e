#pragma once
// The sums over one row of which error figures are made. Internal to report/.

#include <cstdint>

namespace ggufmill {

// Places in RowSums::sum.
enum RowSum { kDifference, kReference, kValue, kProduct, kWeightedDifference, kWeightedReference };

struct RowSums {
  double sum[6] = {};
  double largest = 0;
};

// A row of reference values and of those that stand for them.
struct PairedRow {
  const float* reference;
  const float* values;
  std::uint64_t columns;
  const float* weights;  // or null
};

// The same on every machine: element i is added to lane i % 8 of eight, and these are added in pairs. With a NaN or an
// infinity among the values the sum of differences is not finite either.
RowSums sum_row(const PairedRow& row);

}  // namespace ggufmill
