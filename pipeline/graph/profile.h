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

namespace ggufmill {

struct Slab;
struct SlabPart;

// The last ones are what the flow graph does on one thread at a time: it cuts the plan into slabs, makes them with
// their memory, records what is done, and frees the memory.
enum class ProfileStep { kRead, kDecode, kCheck, kEncode, kMeasure, kWrite, kCut, kMake, kRecord, kFree };
inline constexpr std::size_t kProfileSteps = 10;
const char* name_of(ProfileStep step);

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
    double wait = 0;   // seconds during which conversion threads were idle
    double wall = 0;
    unsigned threads = 0;
  };

  Profile();
  ~Profile();

  // Record that `step` of a part of a slab (for reads: its first part) took from `start` until now, on this thread or
  // in the background. Events for which there is no memory are dropped.
  void worked(ProfileStep step, const Slab& slab, const SlabPart& part, Clock::time_point start) noexcept;
  void transferred(ProfileStep step, const Slab& slab, const SlabPart& part, Clock::time_point start) noexcept;
  // Records the same for a step that only one thread at a time does; not thread-safe.
  void alone(ProfileStep step, Clock::time_point start) noexcept;
  // Records what was found out about the outputs, one line each.
  void found(std::vector<std::string> findings) { findings_ = std::move(findings); }
  // Marks the end of the run.
  void finish(unsigned threads);

  Summary summary() const;
  const std::vector<std::string>& findings() const { return findings_; }
  // Returns the events in Chrome's trace format, which Perfetto (ui.perfetto.dev) opens: one track per thread, and one
  // for the reads and writes of each slab. Contains the first kMaxEvents events of a long run; the totals include all
  // events.
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
    std::vector<Event> events;
  };

  void add(Track& track, ProfileStep step, const Slab& slab, const SlabPart& part, Clock::time_point start);
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
  Track transfers_;  // guarded by mutex_
  Sums alone_;
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
