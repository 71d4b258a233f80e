#include "pipeline/report/difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "pipeline/report/row_sums.h"

namespace ggufmill {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

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
  spread.add(other.spread);
}

void RowSpread::add(const RowSpread& other) {
  ee += other.ee;
  er += other.er;
  rr += other.rr;
  weighted_ee += other.weighted_ee;
  weighted_er += other.weighted_er;
  weighted_rr += other.weighted_rr;
}

ErrorFigures statistics_of(const ErrorSums& sums) {
  if (sums.count == 0) return {kNone, kNone, kNone, kNone, kNone};
  ErrorFigures statistics{};
  statistics.rmse = std::sqrt(sums.difference / static_cast<double>(sums.count));
  statistics.largest = sums.largest;
  const double lengths = std::sqrt(sums.reference) * std::sqrt(sums.value);
  statistics.cosine = lengths > 0 ? std::clamp(sums.product / lengths, -1.0, 1.0)
                                  : (sums.reference == 0 && sums.value == 0 ? 1 : kNone);
  statistics.relative = root_of_share(sums.difference, sums.reference);
  statistics.weighted = sums.weighted ? root_of_share(sums.weighted_difference, sums.weighted_reference) : kNone;
  return statistics;
}

void DifferenceSums::add_row(const float* reference, const float* values, std::uint64_t columns, const float* weights) {
  const RowSums row = sum_row({reference, values, columns, weights});
  if (!std::isfinite(row.sum[kDifference])) {
    const FinitePairs finite(reference, values, columns, weights);
    not_finite_ += columns - finite.a.size();
    return add_row(finite.a.data(), finite.b.data(), finite.a.size(), weights ? finite.w.data() : nullptr);
  }
  count_ += columns;
  weighted_ |= weights != nullptr;
  for (std::size_t i = 0; i < (weights ? kSpread : std::size_t{kWeightedDifference}); ++i) sums_[i].add(row.sum[i]);
  const auto add_spread = [&](std::size_t at, double e, double r) {
    sums_[at].add(e * e);
    sums_[at + 1].add(e * r);
    sums_[at + 2].add(r * r);
  };
  add_spread(kSpread, row.sum[kDifference], row.sum[kReference]);
  if (weights) add_spread(kSpread + 3, row.sum[kWeightedDifference], row.sum[kWeightedReference]);
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
          largest_,
          {sums_[kSpread].value(), sums_[kSpread + 1].value(), sums_[kSpread + 2].value(), sums_[kSpread + 3].value(),
           sums_[kSpread + 4].value(), sums_[kSpread + 5].value()}};
}

DifferenceSums::Numbers DifferenceSums::numbers() const {
  Numbers numbers;
  auto to = numbers.begin();
  for (const ExactSum& sum : sums_) to = std::ranges::copy(sum.words(), to).out;
  *to++ = count_;
  *to++ = not_finite_;
  *to++ = std::bit_cast<std::uint64_t>(largest_);
  *to = weighted_ ? 1 : 0;
  return numbers;
}

bool DifferenceSums::set(const Numbers& numbers) {
  const auto rest = numbers.begin() + kSums * ExactSum::kWords;
  const auto largest = std::bit_cast<double>(rest[2]);
  if (!(largest >= 0) || std::isinf(largest) || rest[3] > 1) return false;
  auto from = numbers.begin();
  for (ExactSum& sum : sums_) {
    ExactSum::Words words;
    std::copy_n(from, words.size(), words.begin());
    from += words.size();
    sum.set(words);
  }
  count_ = rest[0];
  not_finite_ = rest[1];
  largest_ = largest;
  weighted_ = rest[3] != 0;
  return true;
}

void TargetMeasure::add_error(const DifferenceSums& sums, std::uint64_t first_row, std::uint64_t rows) {
  const std::lock_guard lock(mutex_);
  if (matrix_rows_ != 0) {
    const std::uint64_t matrix = first_row / matrix_rows_;
    MatrixUnderWay& of_matrix = matrix_sums_[matrix];
    of_matrix.sums.add(sums);
    of_matrix.rows += rows;
    if (of_matrix.rows == matrix_rows_) {
      matrices_[matrix] = of_matrix.sums.rounded();
      matrix_sums_.erase(matrix);
    }
  }
  if (!sums_) sums_ = std::make_unique<DifferenceSums>();
  sums_->add(sums);
  rows_left_ -= rows;
  if (rows_left_ != 0 || is_partial_) return;
  error_ = sums_->rounded();
  sums_.reset();
}

void HeldOutLoss::add(const HeldOutLoss& other) {
  start += other.start;
  chosen += other.chosen;
  rows += other.rows;
  searched += other.searched;
  if (other.most_shrink == 0) return;
  least_shrink = most_shrink == 0 ? other.least_shrink : std::min(least_shrink, other.least_shrink);
  most_shrink = std::max(most_shrink, other.most_shrink);
}

void TargetMeasure::add_loss(const HeldOutLoss& loss) {
  const std::lock_guard lock(mutex_);
  if (!losses_) losses_ = std::make_unique<Losses>();
  losses_->all.add(loss);
  if (!std::isfinite(loss.start) || !std::isfinite(loss.chosen)) return;
  losses_->start.add(loss.start);
  losses_->chosen.add(loss.chosen);
}

TargetResult TargetMeasure::result() const {
  TargetResult result{static_cast<double>(nanoseconds_) / 1e9, error_, {}, {}, {}};
  if (losses_) {
    result.held_out = losses_->all;
    result.held_out->start = losses_->start.value();
    result.held_out->chosen = losses_->chosen.value();
  }
  if (error_) result.matrices = matrices_;
  if (is_partial_ && sums_) result.partial = std::make_shared<const DifferenceSums>(*sums_);
  return result;
}

}  // namespace ggufmill
