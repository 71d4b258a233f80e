#include "pipeline/report/difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace ggufmill {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Additions of one row go round these in turn, so that none waits for the one before it. Part of what the figures are:
// another number would round differently.
constexpr std::size_t kLanes = 8;

enum Sum { kDifference, kReference, kValue, kProduct, kWeightedDifference, kWeightedReference };

struct RowSums {
  double sum[6] = {};
  double largest = 0;
};

struct Row {
  const float* reference;
  const float* values;
  std::uint64_t columns;
  const float* weights;  // or null
};

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
GGUFMILL_ALWAYS_INLINE RowSums sum_row(const Row& row) {
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
__attribute__((target("avx2"))) RowSums sum_with_avx2(const Row& row) {
  return row.weights ? sum_row<Quad, true>(row) : sum_row<Quad, false>(row);
}
bool has_avx2() { return __builtin_cpu_supports("avx2"); }
#endif

RowSums sum(const Row& row) {
#if defined(__x86_64__)
  static const bool quick = has_avx2();
  if (quick) return sum_with_avx2(row);
#endif
  return row.weights ? sum_row<double, true>(row) : sum_row<double, false>(row);
}

// The finite pairs of a row.
struct FinitePairs {
  FinitePairs(const float* reference, const float* values, std::uint64_t columns, const float* weights) {
    for (std::uint64_t i = 0; i < columns; ++i) {
      if (!std::isfinite(reference[i]) || !std::isfinite(values[i])) continue;
      a.push_back(reference[i]);
      b.push_back(values[i]);
      if (weights) w.push_back(weights[i]);
    }
  }
  std::vector<float> a, b, w;
};

double root_of_share(double part, double whole) {
  if (whole == 0) return part == 0 ? 0 : kNone;
  return std::sqrt(part / whole);
}

}  // namespace

void ErrorSums::add(const ErrorSums& other) {
  count += other.count;
  not_finite += other.not_finite;
  difference += other.difference;
  reference += other.reference;
  value += other.value;
  product += other.product;
  weighted_difference += other.weighted_difference;
  weighted_reference += other.weighted_reference;
  weighted |= other.weighted;
  largest = std::max(largest, other.largest);
}

ErrorFigures figures_of(const ErrorSums& sums) {
  if (sums.count == 0) return {kNone, kNone, kNone, kNone, kNone};
  ErrorFigures figures{};
  figures.rmse = std::sqrt(sums.difference / static_cast<double>(sums.count));
  figures.largest = sums.largest;
  const double lengths = std::sqrt(sums.reference) * std::sqrt(sums.value);
  figures.cosine = lengths > 0 ? std::clamp(sums.product / lengths, -1.0, 1.0)
                               : (sums.reference == 0 && sums.value == 0 ? 1 : kNone);
  figures.relative = root_of_share(sums.difference, sums.reference);
  figures.weighted = sums.weighted ? root_of_share(sums.weighted_difference, sums.weighted_reference) : kNone;
  return figures;
}

void DifferenceSums::add_row(const float* reference, const float* values, std::uint64_t columns, const float* weights) {
  const RowSums row = sum({reference, values, columns, weights});
  if (!std::isfinite(row.sum[kDifference])) {
    const FinitePairs finite(reference, values, columns, weights);
    not_finite_ += columns - finite.a.size();
    return add_row(finite.a.data(), finite.b.data(), finite.a.size(), weights ? finite.w.data() : nullptr);
  }
  count_ += columns;
  weighted_ |= weights != nullptr;
  for (std::size_t i = 0; i < (weights ? kSums : std::size_t{kWeightedDifference}); ++i) sums_[i].add(row.sum[i]);
  largest_ = std::max(largest_, row.largest);
}

void DifferenceSums::add_rows(std::span<const float> reference, std::span<const float> values, std::uint64_t columns,
                              const float* weights) {
  for (std::uint64_t first = 0; first < reference.size(); first += columns)
    add_row(reference.data() + first, values.data() + first, columns, weights);
}

void DifferenceSums::add(const DifferenceSums& other) {
  for (std::size_t i = 0; i < kSums; ++i) sums_[i].add(other.sums_[i]);
  count_ += other.count_;
  not_finite_ += other.not_finite_;
  largest_ = std::max(largest_, other.largest_);
  weighted_ |= other.weighted_;
}

ErrorSums DifferenceSums::rounded() const {
  return {count_,
          not_finite_,
          sums_[kDifference].value(),
          sums_[kReference].value(),
          sums_[kValue].value(),
          sums_[kProduct].value(),
          sums_[kWeightedDifference].value(),
          sums_[kWeightedReference].value(),
          weighted_,
          largest_};
}

}  // namespace ggufmill
