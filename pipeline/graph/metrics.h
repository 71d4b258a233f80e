#pragma once
// Metrics: the covariances with which levels are chosen, with their factors, kept in memory while they are needed and
// as long as the budget allows. A metric is made once, from its file, and shared by all slabs, steps and outputs that
// use it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "pipeline/io/memory.h"
#include "pipeline/plan/step_layout.h"
#include "plugins/abi/ggufmill_covariance.h"

namespace ggufmill {

class ByteSource;
struct Slab;

// Losses of some rows on the first and on the second half of the held-out vectors, which can be of different texts.
struct HalfLosses {
  double first = 0, second = 0;

  double sum() const { return first + second; }
  // Returns the greater share of the losses `start`; infinity if these are 0.
  double worst_share_of(const HalfLosses& start) const;
};

// Returns the losses of at most kLevelRows rows if `call.decoded` replaces `call.weights`. Sets the other members that
// say with which vectors; `vectors` has `call.cols` numbers for each.
HalfLosses losses_of(const ggufmill_covariance_kernels& kernels, ggufmill_loss_call call,
                     std::span<const float> vectors);

// The metric of one matrix.
struct Metric {
  MetricUse use;
  std::uint64_t matrix = 0;
  std::uint64_t ordinal = 0;  // of the first slab that needs it
  std::uint64_t cost = 0;     // bytes of the budget
  // Valid once it is ready, and if it is usable. Otherwise all sums are 0, or the matrix is not positive definite: the
  // levels remain those of the search.
  ggufmill_metric values{};
  bool is_usable = false;
  bool has_helped = true;  // false: it is not usable because levels were no better on held-out vectors in the trial
  double shrink = 0;       // as used
  // Held-out vectors, with which it is decided whether levels are kept; none if the encoder does not choose.
  std::span<const float> vectors{};
  Buffer memory, vector_memory;

  std::uint64_t users = 0, last_use = 0;                                          // of the feed only
  enum class State : std::uint8_t { kNew, kMaking, kReady } state = State::kNew;  // guarded by the mutex of Metrics
  Slab* waiting = nullptr;  // likewise: slabs read before it was ready
};

// Calls a function for each of `count` numbers, in any order, and possibly in parallel.
using ForEach = std::function<void(std::uint64_t count, const std::function<void(std::uint64_t)>& each)>;

// The sources of the extents of a covariance.
struct CovarianceSources {
  const ByteSource &sums, &correlations;
  const ByteSource* vectors;  // null if there are none
};

// Reads the covariance of a metric and factors it. If its shrinkage is to be chosen, each of kShrinks is tried first:
// rows of random numbers are rounded to whole numbers, to the nearest and, by coordinate descent, with the covariance.
// By the errors of their products with held-out vectors, on that half of these where it is worse, the best shrinkage is
// used, or none if the nearest numbers are better. Needs metric.cost bytes of memory, and reads at most some rows at a
// time. Fails with exit code 4 for numbers that are not sums, correlations or vectors. `stopped` ends the work; the
// metric is then not usable.
Status make_metric(const ggufmill_covariance_kernels& kernels, const CovarianceSources& sources,
                   const ForEach& for_each, const std::function<bool()>& stopped, Metric& metric);
// Likewise of a symmetric matrix in memory, with as many rows as the metric's covariance has columns, as it is: neither
// shrunk nor damped. Of that covariance, only the number of columns matters.
Status make_metric(const ggufmill_covariance_kernels& kernels, std::span<const double> elements,
                   const ForEach& for_each, const std::function<bool()>& stopped, Metric& metric);

// acquire() and release() must not be called concurrently; all else is thread-safe.
class Metrics {
 public:
  using Used = std::vector<std::shared_ptr<Metric>>;  // null: that matrix has no covariance

  explicit Metrics(Budget& budget) : budget_(budget) {}

  // Acquires `cost` bytes for a slab of a matrix, and the memory of the metrics that it uses and that are not known.
  // If the budget does not suffice, metrics that no slab uses are dropped, the one first that was not used for longest.
  // Returns false, and acquires nothing, if that does not help.
  bool acquire(std::uint64_t cost, std::span<const MetricUse> uses, std::uint64_t matrix, std::uint64_t ordinal,
               Used& used);
  // Releases the slab's cost, and its use of the metrics, which are kept.
  void release(std::uint64_t cost, const Used& used);

  // Returns the first metric that the slab has to wait for, and puts the slab in its list; null if all are ready.
  // `must_make`: the caller has to make it.
  Metric* wait_for(Slab& slab, bool& must_make) noexcept;
  // Marks a metric as ready, usable or not. Returns the slabs that waited: the first of a list linked by Slab::next.
  Slab* made(Metric& metric) noexcept;

  // Records that a metric is not usable; faults() returns a warning for each, or one for all that have not helped.
  void failed(const Metric& metric);
  std::vector<std::string> faults() const;

 private:
  bool drop_one(const Used& kept);

  Budget& budget_;
  std::map<std::string, std::shared_ptr<Metric>> known_;  // of the feed only
  std::uint64_t uses_ = 0;                                // counts calls of acquire()
  mutable std::mutex mutex_;
  std::set<std::string> faults_, unhelpful_;  // guarded by mutex_
};

}  // namespace ggufmill
