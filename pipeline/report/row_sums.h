#pragma once
// The sums over one row from which error measures are computed. Internal to report/.

#include <cstdint>

namespace ggufmill {

// Indices into RowSums::sum.
enum RowSum { kDifference, kReference, kValue, kProduct, kWeightedDifference, kWeightedReference };

struct RowSums {
  double sum[6] = {};
  double largest = 0;
};

// A row of reference values and of the values that replace them.
struct PairedRow {
  const float* reference;
  const float* values;
  std::uint64_t columns;
  const float* weights;  // may be null
};

// Returns the same result on every machine: element i is added to lane i % 8 of eight, and the lanes are added in
// pairs. If the values contain a NaN or an infinity, the sum of differences is not finite.
RowSums sum_row(const PairedRow& row);

}  // namespace ggufmill
