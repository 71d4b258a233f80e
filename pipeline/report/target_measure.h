#pragma once
// What is measured of one tensor of one output while it is made.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "pipeline/report/difference.h"

namespace ggufmill {

struct TargetResult {
  double seconds = 0;              // that threads spent on making it, decoding of the source not counted
  std::optional<ErrorSums> error;  // none: not measured, as it was not asked for or nothing could be lost
};

// Thread-safe but for result(). The exact sums of a tensor under way take about 2 KiB; with its last row they are
// rounded and freed.
class TargetMeasure {
 public:
  explicit TargetMeasure(std::uint64_t rows) : rows_left_(rows) {}

  void add_time(std::chrono::nanoseconds time) { nanoseconds_ += static_cast<std::uint64_t>(time.count()); }
  // Of `rows` rows that were not added before. In any order: the result is the same.
  void add_error(const DifferenceSums& sums, std::uint64_t rows);
  TargetResult result() const;

 private:
  std::atomic<std::uint64_t> nanoseconds_{0};
  std::mutex mutex_;
  std::uint64_t rows_left_;               // guarded by mutex_, as are those below
  std::unique_ptr<DifferenceSums> sums_;  // of the rows so far
  std::optional<ErrorSums> error_;        // of all rows
};

}  // namespace ggufmill
