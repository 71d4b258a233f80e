#pragma once
// How far values are from those they stand for: the sums of which all error figures are made.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/report/exact_sum.h"

namespace ggufmill {

// Sums over pairs of a reference value a and the value b that stands for it, with the importance w of its column. Pairs
// of which one is NaN or infinite are only counted.
struct ErrorSums {
  std::uint64_t count = 0;         // of finite pairs
  std::uint64_t not_finite = 0;    // of the others
  double difference = 0;           // of (a - b)^2
  double reference = 0;            // of a^2
  double value = 0;                // of b^2
  double product = 0;              // of a * b
  double weighted_difference = 0;  // of w * (a - b)^2, where there are weights
  double weighted_reference = 0;   // of w * a^2
  bool weighted = false;
  double largest = 0;  // |a - b|

  // Adds what was summed over other pairs.
  void add(const ErrorSums& other);
};

// What people read. Not-a-number where it does not exist: no finite pair, no weights, a reference of zeros only.
struct ErrorFigures {
  double rmse;      // root-mean-square error: sqrt(sum (a - b)^2 / count)
  double largest;   // max |a - b|
  double cosine;    // sum a b / sqrt(sum a^2 * sum b^2); 1 where both are all zeros
  double relative;  // sqrt(sum (a - b)^2 / sum a^2); 0 where both are all zeros
  double weighted;  // sqrt(sum w (a - b)^2 / sum w a^2)
};
ErrorFigures figures_of(const ErrorSums& sums);

// Adds up rows, in any order and in any groups to the same result: within a row the order of additions is fixed, the
// sums of rows are added exactly. Not thread-safe.
class DifferenceSums {
 public:
  // Whole rows of `columns` values each; `weights` of the columns, or null.
  void add_rows(std::span<const float> reference, std::span<const float> values, std::uint64_t columns,
                const float* weights);
  void add(const DifferenceSums& other);
  ErrorSums rounded() const;

  // As numbers, for sums that are added up on several machines; and back. False, and nothing is changed, where they are
  // none of sums.
  static constexpr std::size_t kNumbers = 6 * ExactSum::kWords + 4;
  using Numbers = std::array<std::uint64_t, kNumbers>;
  Numbers numbers() const;
  bool set(const Numbers& numbers);

 private:
  static constexpr std::size_t kSums = 6;
  void add_row(const float* reference, const float* values, std::uint64_t columns, const float* weights);

  std::array<ExactSum, kSums> sums_;
  std::uint64_t count_ = 0, not_finite_ = 0;
  double largest_ = 0;
  bool weighted_ = false;
};

// What is measured of one tensor of one output while it is made.
struct TargetResult {
  double seconds = 0;              // that threads spent on making it, decoding of the source not counted
  std::optional<ErrorSums> error;  // none: not measured, as it was not asked for or nothing could be lost
  // In place of `error`, of a run of some units of the plan alone: of these.
  std::shared_ptr<const DifferenceSums> partial{};
  std::vector<ErrorSums> matrices{};  // of each, where that was asked for and there are several
};

// Thread-safe but for result(). The exact sums of a tensor under way, and of a matrix of it, take about 2 KiB; with the
// last row they are rounded and freed.
class TargetMeasure {
 public:
  // `is_partial`: not all of the tensor's rows may come. `matrix_rows`: rows of each matrix, where they are measured
  // one by one, too; 0: they are not.
  explicit TargetMeasure(std::uint64_t rows, bool is_partial = false, std::uint64_t matrix_rows = 0)
      : is_partial_(is_partial),
        matrix_rows_(matrix_rows),
        rows_left_(rows),
        matrices_(matrix_rows ? rows / matrix_rows : 0) {}

  std::uint64_t matrix_rows() const { return matrix_rows_; }

  void add_time(std::chrono::nanoseconds time) { nanoseconds_ += static_cast<std::uint64_t>(time.count()); }
  // Of `rows` rows from `first_row` on that were not added before; where matrices are measured, of one. In any order:
  // the result is the same.
  void add_error(const DifferenceSums& sums, std::uint64_t first_row, std::uint64_t rows);
  TargetResult result() const;

 private:
  struct MatrixUnderWay {
    std::uint64_t rows = 0;
    DifferenceSums sums;
  };

  const bool is_partial_;
  const std::uint64_t matrix_rows_;
  std::atomic<std::uint64_t> nanoseconds_{0};
  std::mutex mutex_;
  std::uint64_t rows_left_;               // guarded by mutex_, as are those below
  std::unique_ptr<DifferenceSums> sums_;  // of the rows so far
  std::optional<ErrorSums> error_;        // of all rows
  std::map<std::uint64_t, MatrixUnderWay> matrix_sums_;
  std::vector<ErrorSums> matrices_;
};

}  // namespace ggufmill
