#pragma once
// Differences between values and their reference: the sums from which all error measures are computed.

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

// Sums over rows of products of two of a row's sums: e, the sum of (a - b)^2, and r, the sum of a^2. They show how much
// rows differ, and therefore how well some rows represent all.
struct RowSpread {
  double ee = 0, er = 0, rr = 0;
  double weighted_ee = 0, weighted_er = 0, weighted_rr = 0;  // the same for sums with weights

  void add(const RowSpread& other);
};

// Sums over pairs of a reference value a and the value b that replaces it, with the importance w of its column. Pairs
// with a NaN or an infinity are only counted.
struct ErrorSums {
  std::uint64_t count = 0;         // number of finite pairs
  std::uint64_t not_finite = 0;    // number of other pairs
  double difference = 0;           // sum of (a - b)^2
  double reference = 0;            // sum of a^2
  double value = 0;                // sum of b^2
  double product = 0;              // sum of a * b
  double weighted_difference = 0;  // sum of w * (a - b)^2, if there are weights
  double weighted_reference = 0;   // sum of w * a^2
  bool weighted = false;
  double largest = 0;  // maximum of |a - b|
  RowSpread spread{};

  // Adds the sums over other pairs.
  void add(const ErrorSums& other);
};

// Error measures for users. NaN if undefined: no finite pair, no weights, a reference that is all zeros.
struct ErrorFigures {
  double rmse;      // root-mean-square error: sqrt(sum (a - b)^2 / count)
  double largest;   // max |a - b|
  double cosine;    // sum a b / sqrt(sum a^2 * sum b^2); 1 if both are all zeros
  double relative;  // sqrt(sum (a - b)^2 / sum a^2); 0 if both are all zeros
  double weighted;  // sqrt(sum w (a - b)^2 / sum w a^2)
};
ErrorFigures statistics_of(const ErrorSums& sums);

// Accumulates rows; the result does not depend on their order or grouping: within a row the order of additions is
// fixed, and the sums of rows are added exactly. Not thread-safe.
class DifferenceSums {
 public:
  // Adds complete rows of `columns` values each; `weights` has one per column, or is null.
  void add_rows(std::span<const float> reference, std::span<const float> values, std::uint64_t columns,
                const float* weights);
  void add(const DifferenceSums& other);
  ErrorSums rounded() const;

  // Conversion to and from numbers, for sums that are added up on several machines. set() returns false and changes
  // nothing if the numbers are not valid sums.
  static constexpr std::size_t kNumbers = 12 * ExactSum::kWords + 4;
  using Numbers = std::array<std::uint64_t, kNumbers>;
  Numbers numbers() const;
  bool set(const Numbers& numbers);

 private:
  static constexpr std::size_t kSums = 12, kSpread = 6;  // the sums of a row, and from kSpread on their RowSpread
  void add_row(const float* reference, const float* values, std::uint64_t columns, const float* weights);

  std::array<ExactSum, kSums> sums_;
  std::uint64_t count_ = 0, not_finite_ = 0;
  double largest_ = 0;
  bool weighted_ = false;
};

// What levels that were chosen with a covariance made of the errors of a tensor's products with held-out vectors. Sums
// of squares; only their ratio has a meaning.
struct HeldOutLoss {
  double start = 0, chosen = 0;              // of the search, and of what was written
  std::uint64_t rows = 0, searched = 0;      // rows, and those whose levels are of the search
  double least_shrink = 0, most_shrink = 0;  // of the matrices with other levels; 0 if there are none

  void add(const HeldOutLoss& other);
};

// Measurements of one tensor of one output, taken while it is made.
struct TargetResult {
  double seconds = 0;              // spent by threads on making it, without decoding the source
  std::optional<ErrorSums> error;  // nullopt if not measured: not requested, or the conversion is lossless
  // Replaces `error` in a run of only some units of the plan: sums over these.
  std::shared_ptr<const DifferenceSums> partial{};
  std::vector<ErrorSums> matrices{};      // for each matrix, if requested and if there are several
  std::optional<HeldOutLoss> held_out{};  // of the rows that were made, if there are held-out vectors
};

// Collects the measurements of one tensor. Thread-safe except for result(). The exact sums of a tensor in progress, and
// of a matrix of it, take about 3 KiB; they are rounded and freed with the last row.
class TargetMeasure {
 public:
  // `is_partial` is set if not all of the tensor's rows may be added. `matrix_rows` is the number of rows of each
  // matrix if matrices are also measured individually, else 0.
  explicit TargetMeasure(std::uint64_t rows, bool is_partial = false, std::uint64_t matrix_rows = 0)
      : is_partial_(is_partial),
        matrix_rows_(matrix_rows),
        rows_left_(rows),
        matrices_(matrix_rows ? rows / matrix_rows : 0) {}

  std::uint64_t matrix_rows() const { return matrix_rows_; }

  void add_time(std::chrono::nanoseconds time) { nanoseconds_ += static_cast<std::uint64_t>(time.count()); }
  // Adds the sums of `rows` rows starting at `first_row` that were not added before; if matrices are measured, all of
  // one matrix. The result does not depend on the order.
  void add_error(const DifferenceSums& sums, std::uint64_t first_row, std::uint64_t rows);
  // Adds the loss of some rows.
  void add_loss(const HeldOutLoss& loss);
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
  std::uint64_t rows_left_;               // guarded by mutex_, like the members below
  std::unique_ptr<DifferenceSums> sums_;  // of the rows so far
  std::optional<ErrorSums> error_;        // of all rows
  std::map<std::uint64_t, MatrixUnderWay> matrix_sums_;
  std::vector<ErrorSums> matrices_;
  struct Losses {
    HeldOutLoss all;
    ExactSum start, chosen;  // its sums
  };
  std::unique_ptr<Losses> losses_;
};

}  // namespace ggufmill
