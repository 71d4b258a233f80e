#pragma once
// Status of a cluster job, or of a matrix of them.

#include <boost/json/object.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/cluster/cluster_array.h"
#include "pipeline/cluster/done_parts.h"
#include "pipeline/cluster/slurm.h"
#include "pipeline/core/lifetime.h"

namespace ggufmill {

struct PartStatus {
  enum class State {
    kDone,
    kRunning,  // confirmed by the engine or by heartbeats
    kQueued,   // queued in the engine
    kFailed,   // permanently
    kMissing,  // not done, and nobody is working on it
  };
  State state = State::kMissing;
  std::size_t units = 0, units_done = 0;
  double cost = 0;
  std::string host{};    // of the last attempt
  std::string engine{};  // state and reason reported by the engine: "PENDING (Resources)"
  std::string error{};   // of the last attempt that failed
  std::string lost{};    // why a part that was done must be redone; else empty
};
inline constexpr std::string_view kPartStates[] = {"done", "running", "queued", "failed", "missing"};

struct JobStatus {
  enum class State { kSealed = 0, kRunning = 1, kNeedsResume = 2 };  // also the exit codes of `status`
  State state = State::kNeedsResume;
  std::vector<PartStatus> parts;      // of all jobs, numbered across the array
  std::vector<bool> sealed;           // per job
  std::string seal;                   // state reported by the engine; empty: none
  std::vector<std::string> warnings;  // set if the engine could not be queried

  std::size_t count(PartStatus::State one) const;
  double part_done() const;  // from 0 to 1, weighted by cost
};

// Returns {folder, state, done, part_done, seal, parts: [{state, units, units_done, host, engine, error, lost}]}, for a
// matrix also {jobs: [{source, folder, sealed, first_part, parts}]}.
boost::json::object describe_status(const ClusterArray& array, const JobStatus& status);

// Checks the jobs of an array repeatedly. A part's heartbeat changes while the part is alive, so two checks in sequence
// show whether it is, even if the engine does not report it. Not thread-safe.
class JobWatch {
 public:
  // `planned` must outlive this object.
  explicit JobWatch(GGUFMILL_OUTLIVES_RESULT const PlannedArray& planned);

  // Returns the current status. With `patient`, if parts claim to be running but the engine does not confirm it, waits
  // for a heartbeat a little longer than the interval between two of them.
  JobStatus look(bool patient);

 private:
  using Clock = std::chrono::steady_clock;
  PartStatus look_at(std::size_t part, const std::optional<SlurmView>& slurm);

  const ClusterArray& array_;
  const std::vector<Plan>& plans_;
  std::vector<DoneParts> done_;               // per job
  std::vector<std::string> heartbeats_;       // per part: attempt and count of the last heartbeat seen
  std::vector<Clock::time_point> last_beat_;  // when it last changed; default value: not yet
  bool has_looked_ = false;
};

}  // namespace ggufmill
