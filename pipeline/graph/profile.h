#pragma once
// Profiles a run: totals for each step, and a trace of events.

#include <tbb/enumerable_thread_specific.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/graph/timeline.h"

namespace ggufmill {

struct Slab;
struct SlabPart;

// The last ones are what the flow graph does on one thread at a time: it cuts the plan into slabs, makes them with
// their memory, records what is done, and frees the memory.
enum class ProfileStep { kRead, kDecode, kCheck, kEncode, kMeasure, kWrite, kCut, kMake, kRecord, kFree };
inline constexpr std::size_t kProfileSteps = 10;
const char* name_of(ProfileStep step);

// A run opens its files, reads and converts, lets the last slabs pass once there are no more, and closes its files:
// syncs, checks and renames them.
enum class ProfilePhase { kOpen, kConvert, kDrain, kClose };
inline constexpr std::size_t kProfilePhases = 4;

// What idle threads wait for: in the phase kConvert for reads or writes, in proportion to those under way, or, if there
// are none, for each other; in the other phases for what it does.
enum class IdleReason { kOpen, kReads, kWrites, kThreads, kDrain, kClose };
inline constexpr std::size_t kIdleReasons = 6;
const char* name_of(IdleReason reason);

// Recording is thread-safe during the run; the results may be read only after it.
class Profile {
 public:
  using Clock = std::chrono::steady_clock;

  struct Sum {
    std::uint64_t calls = 0;
    double seconds = 0;  // total of all calls

    void add(double more) {
      ++calls;
      seconds += more;
    }
  };
  using Sums = std::array<Sum, kProfileSteps>;
  static double seconds_of(const Sums& sums);  // in total
  struct Summary {
    Sums worked;       // by conversion threads, in their own time
    Sums transferred;  // background transfers, which may overlap
    Sums alone;        // by one thread at a time, whose sum limits the speed of any number of threads
    double wait = 0;   // seconds during which conversion threads were idle, the sum of `idle`
    std::array<double, kIdleReasons> idle{};
    double wall = 0;
    unsigned threads = 0;
  };

  // How the threads spent a part of the run's time, as parts of it.
  struct Moment {
    double busy = 0;
    std::array<double, kIdleReasons> idle{};
  };

  Profile();
  ~Profile();

  // Record that `step` of a part of a slab (for reads: its first part) took from `start` until now, on this thread or
  // in the background. Events for which there is no memory are dropped.
  void worked(ProfileStep step, const Slab& slab, const SlabPart& part, Clock::time_point start) noexcept;
  void transferred(ProfileStep step, const Slab& slab, const SlabPart& part, Clock::time_point start) noexcept;
  // Records the same for a step that only one thread at a time does; not thread-safe.
  void alone(ProfileStep step, Clock::time_point start) noexcept;
  // Records that the next phase begins. Not thread-safe.
  void enter(ProfilePhase phase) noexcept { phases_[static_cast<std::size_t>(phase)] = Clock::now(); }
  // Records what was found out about the outputs, one line each.
  void found(std::vector<std::string> findings) { findings_ = std::move(findings); }
  // Marks the end of the run.
  void finish(unsigned threads);

  Summary summary() const;
  // Returns the run in equal parts of its time.
  std::vector<Moment> moments(std::size_t parts) const;
  const std::vector<std::string>& findings() const { return findings_; }
  // Returns the events in Chrome's trace format, which Perfetto (ui.perfetto.dev) opens: one track per thread, and one
  // for the reads and writes of each slab, and a counter of the threads at work and what the others wait for. Contains
  // the first kMaxEvents events of a long run; the totals include all events.
  std::string trace() const;

 private:
  static constexpr std::uint64_t kMaxEvents = 1 << 18;  // 12 MiB

  struct Event {
    ProfileStep step;
    std::uint64_t ordinal;
    const std::string* tensor;
    Clock::time_point start, end;
  };
  struct Track {
    Sums sums;
    Timeline timeline;
    std::vector<Event> events;
  };

  void add(Track& track, ProfileStep step, const Slab& slab, const SlabPart& part, Clock::time_point start);
  double seconds_at(Clock::time_point time) const;
  struct Timelines;
  Timelines timelines() const;
  Moment moment(const Timelines& lines, double begin, double end) const;
  void add_counters(std::string& json) const;
  double microseconds(Clock::time_point time) const;
  void add_span(std::string& json, const Event& event, std::size_t thread) const;
  void add_transfer(std::string& json, const Event& event) const;
  static std::string totals(const Sums& sums);
  std::string totals() const;

  const Clock::time_point begin_;
  Clock::time_point end_;
  unsigned threads_ = 0;
  std::atomic<std::uint64_t> events_{0};
  tbb::enumerable_thread_specific<Track> tracks_;
  std::mutex mutex_;
  Track transfers_;  // guarded by mutex_; its timeline: of reads
  Timeline writes_;  // guarded by mutex_
  Sums alone_;
  Timeline alone_line_;
  std::array<Clock::time_point, kProfilePhases> phases_;
  std::vector<std::string> findings_;
};

// Measures a step on this thread during its own lifetime, if the run is profiled.
class ProfiledStep {
 public:
  ProfiledStep(ProfileStep step, const Slab& slab, const SlabPart& part);
  ~ProfiledStep();
  ProfiledStep(const ProfiledStep&) = delete;
  ProfiledStep& operator=(const ProfiledStep&) = delete;

 private:
  ProfileStep step_;
  const Slab& slab_;
  const SlabPart& part_;
  Profile::Clock::time_point start_;
};

}  // namespace ggufmill
