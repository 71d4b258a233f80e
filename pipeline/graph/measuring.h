#pragma once
// What a run measures for its report, of each target.

#include <chrono>
#include <deque>
#include <span>
#include <vector>

#include "pipeline/graph/work.h"

namespace ggufmill {

// Adds the time from its making to its end to a target's, where that is wanted.
class MeasuredTime {
 public:
  explicit MeasuredTime(TargetMeasure* measure) : measure_(measure) {
    if (measure_) start_ = Clock::now();
  }
  ~MeasuredTime() {
    if (measure_) measure_->add_time(Clock::now() - start_);
  }
  MeasuredTime(const MeasuredTime&) = delete;
  MeasuredTime& operator=(const MeasuredTime&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  TargetMeasure* measure_;
  Clock::time_point start_;
};

// Rows of a target that were just encoded.
struct EncodedRows {
  std::uint64_t rows;
  std::uint64_t columns;
  std::span<const float> values;  // that they stand for
  std::span<const std::byte> bytes;
  const float* weights;  // of the columns, or null
};

// Decodes the rows again and adds what they lost to the target's measure. `scratch`: kTileBytes, or one row where that
// is longer.
Status measure_error(const TargetWork& target, const EncodedRows& encoded, std::span<float> scratch);

// Where the plan wants no report: nothing at all.
class RunMeasures {
 public:
  // Gives every target its measure. Outlives all use of `work`.
  RunMeasures(const Plan& plan, std::vector<RouteWork>& work);
  RunMeasures(const RunMeasures&) = delete;
  RunMeasures& operator=(const RunMeasures&) = delete;

  // Of the targets of each route, when the run is done.
  std::vector<std::vector<TargetResult>> results() const;

 private:
  std::vector<std::deque<TargetMeasure>> routes_;  // a deque's elements need not move
};

}  // namespace ggufmill
