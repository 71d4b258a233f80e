#include "pipeline/report/row_sums.h"

#include <algorithm>
#include <cstring>

namespace ggufmill {
namespace {

// Number of lanes: consecutive elements are added to different lanes, so that no addition waits for the previous one.
// The results depend on it: another number would round differently.
constexpr std::size_t kLanes = 8;

// A vector extension of the compiler (GCC, clang), for any instruction set: the same additions on all machines.
using Quad = double __attribute__((vector_size(4 * sizeof(double))));

void load(const float* from, Quad& into) {
  using Floats = float __attribute__((vector_size(4 * sizeof(float))));
  Floats floats;
  std::memcpy(&floats, from, sizeof floats);
  into = __builtin_convertvector(floats, Quad);
}

double lane_of(const Quad* sums, std::size_t lane) { return sums[lane / 4][lane % 4]; }

// The sums of a row in kLanes lanes.
template <bool kWeighted>
class LaneSums {
 public:
  static constexpr std::size_t kStep = 4, kParts = kLanes / kStep;

  // Adds the next kLanes pairs.
  void add(const float* reference, const float* values, const float* weights) {
    for (std::size_t part = 0; part < kParts; ++part) {
      Quad a, b;
      load(reference + part * kStep, a);
      load(values + part * kStep, b);
      const Quad d = a - b, minus = -d, size = d > minus ? d : minus;
      sum_[kDifference][part] += d * d;
      sum_[kReference][part] += a * a;
      sum_[kValue][part] += b * b;
      sum_[kProduct][part] += a * b;
      largest_[part] = size > largest_[part] ? size : largest_[part];
      if constexpr (kWeighted) {
        Quad w;
        load(weights + part * kStep, w);
        sum_[kWeightedDifference][part] += w * (d * d);
        sum_[kWeightedReference][part] += w * (a * a);
      }
    }
  }

  RowSums total() const {
    RowSums row;
    for (std::size_t i = 0; i < kSums; ++i) row.sum[i] = total_of(sum_[i]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) row.largest = std::max(row.largest, lane_of(largest_, lane));
    return row;
  }

 private:
  static constexpr std::size_t kSums = kWeighted ? 6 : 4;

  static double total_of(const Quad* sums) {
    const auto pair = [&](std::size_t lane) { return lane_of(sums, lane) + lane_of(sums, lane + 1); };
    return (pair(0) + pair(2)) + (pair(4) + pair(6));
  }

  Quad sum_[kSums][kParts] = {};
  Quad largest_[kParts] = {};
};

template <bool kWeighted>
RowSums sum_in(const PairedRow& row) {
  LaneSums<kWeighted> sums;
  std::uint64_t i = 0;
  for (; i + kLanes <= row.columns; i += kLanes)
    sums.add(row.reference + i, row.values + i, kWeighted ? row.weights + i : nullptr);
  if (i == row.columns) return sums.total();
  float rest[3][kLanes] = {};  // zeros add nothing
  std::copy(row.reference + i, row.reference + row.columns, rest[0]);
  std::copy(row.values + i, row.values + row.columns, rest[1]);
  if (kWeighted) std::copy(row.weights + i, row.weights + row.columns, rest[2]);
  sums.add(rest[0], rest[1], rest[2]);
  return sums.total();
}

}  // namespace

RowSums sum_row(const PairedRow& row) { return row.weights ? sum_in<true>(row) : sum_in<false>(row); }

}  // namespace ggufmill
