#pragma once
// How far a cluster job, or a matrix of them, is.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/cluster/cluster_array.h"
#include "pipeline/cluster/done_parts.h"
#include "pipeline/cluster/slurm.h"

namespace ggufmill {

struct PartStatus {
  enum class State {
    kDone,
    kRunning,  // the engine says so, or it gives signs of life
    kQueued,   // the engine has it
    kFailed,   // for good
    kMissing,  // nobody is at it
  };
  State state = State::kMissing;
  std::size_t units = 0, units_done = 0;
  double cost = 0;
  std::string host;    // of the last attempt
  std::string engine;  // the engine's word for it and why: "PENDING (Resources)"
  std::string error;   // of the last attempt that ended with one
  std::string lost;    // of a part that was done, and is to be done again: why
};
inline constexpr std::string_view kPartStates[] = {"done", "running", "queued", "failed", "missing"};

struct JobStatus {
  enum class State { kSealed = 0, kRunning = 1, kNeedsResume = 2 };  // also the exit codes of `status`
  State state = State::kNeedsResume;
  std::vector<PartStatus> parts;      // of all jobs, numbered through
  std::vector<bool> sealed;           // of each job
  std::string seal;                   // the engine's word for it; empty: it has none
  std::vector<std::string> warnings;  // the engine could not be asked

  std::size_t count(PartStatus::State one) const;
  double part_done() const;  // from 0 to 1, by cost
};

// Looks at the jobs of an array again and again. What a part says of itself changes while it is alive, so two looks
// tell whether that is so, where the engine does not. Not thread-safe.
class JobWatch {
 public:
  // Which outlives it.
  explicit JobWatch(const PlannedArray& planned);

  // With `patient`: waits, up to a bit more than the time between two signs of life, until a part that nobody else
  // vouches for gives one.
  JobStatus look(bool patient);

 private:
  using Clock = std::chrono::steady_clock;
  PartStatus look_at(std::size_t part, const std::optional<SlurmView>& slurm);

  const ClusterArray& array_;
  const std::vector<Plan>& plans_;
  std::vector<DoneParts> done_;               // of each job
  std::vector<std::string> beats_;            // of each part, as seen last: attempt and count
  std::vector<Clock::time_point> last_beat_;  // when that was seen to change; the clock's beginning: not yet
  bool has_looked_ = false;
};

}  // namespace ggufmill
