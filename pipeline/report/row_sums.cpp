#include "pipeline/report/row_sums.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace ggufmill {
namespace {

// Additions of one row go round these in turn, so that none waits for the one before it. Part of what the figures are:
// another number would round differently.
constexpr std::size_t kLanes = 8;

// Makes a function part of its callers, whatever instructions these are compiled for.
#define GGUFMILL_ALWAYS_INLINE inline __attribute__((always_inline))

// A vector of the compiler's (GCC, clang).
using Quad = double __attribute__((vector_size(4 * sizeof(double))));

GGUFMILL_ALWAYS_INLINE void load(const float* from, double& into) { into = *from; }
GGUFMILL_ALWAYS_INLINE void load(const float* from, Quad& into) {
  using Floats = float __attribute__((vector_size(4 * sizeof(float))));
  Floats floats;
  std::memcpy(&floats, from, sizeof floats);
  into = __builtin_convertvector(floats, Quad);
}

GGUFMILL_ALWAYS_INLINE double lane_of(const double* sums, std::size_t lane) { return sums[lane]; }
GGUFMILL_ALWAYS_INLINE double lane_of(const Quad* sums, std::size_t lane) { return sums[lane / 4][lane % 4]; }

// The sums of a row in kLanes lanes, held in doubles or in quads of them: the same additions.
template <class Numbers, bool kWeighted>
class LaneSums {
 public:
  static constexpr std::size_t kStep = std::is_same_v<Numbers, double> ? 1 : 4, kParts = kLanes / kStep;

  // The next kLanes pairs.
  GGUFMILL_ALWAYS_INLINE void add(const float* reference, const float* values, const float* weights) {
    for (std::size_t part = 0; part < kParts; ++part) {
      Numbers a, b;
      load(reference + part * kStep, a);
      load(values + part * kStep, b);
      const Numbers d = a - b, minus = -d, size = d > minus ? d : minus;
      sum_[kDifference][part] += d * d;
      sum_[kReference][part] += a * a;
      sum_[kValue][part] += b * b;
      sum_[kProduct][part] += a * b;
      largest_[part] = size > largest_[part] ? size : largest_[part];
      if constexpr (kWeighted) {
        Numbers w;
        load(weights + part * kStep, w);
        sum_[kWeightedDifference][part] += w * (d * d);
        sum_[kWeightedReference][part] += w * (a * a);
      }
    }
  }

  GGUFMILL_ALWAYS_INLINE RowSums total() const {
    RowSums row;
    for (std::size_t i = 0; i < kSums; ++i) row.sum[i] = total_of(sum_[i]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) row.largest = std::max(row.largest, lane_of(largest_, lane));
    return row;
  }

 private:
  static constexpr std::size_t kSums = kWeighted ? 6 : 4;

  GGUFMILL_ALWAYS_INLINE static double total_of(const Numbers* sums) {
    const auto pair = [&](std::size_t lane) { return lane_of(sums, lane) + lane_of(sums, lane + 1); };
    return (pair(0) + pair(2)) + (pair(4) + pair(6));
  }

  Numbers sum_[kSums][kParts] = {};
  Numbers largest_[kParts] = {};
};

template <class Numbers, bool kWeighted>
GGUFMILL_ALWAYS_INLINE RowSums sum_in(const PairedRow& row) {
  LaneSums<Numbers, kWeighted> sums;
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

#if defined(__x86_64__)
__attribute__((target("avx2"))) RowSums sum_with_avx2(const PairedRow& row) {
  return row.weights ? sum_in<Quad, true>(row) : sum_in<Quad, false>(row);
}
bool has_avx2() { return __builtin_cpu_supports("avx2"); }
#endif

}  // namespace

RowSums sum_row_plainly(const PairedRow& row) {
  return row.weights ? sum_in<double, true>(row) : sum_in<double, false>(row);
}

RowSums sum_row(const PairedRow& row) {
#if defined(__x86_64__)
  static const bool quick = has_avx2();
  if (quick) return sum_with_avx2(row);
#endif
  return sum_row_plainly(row);
}

}  // namespace ggufmill
