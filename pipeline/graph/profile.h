#pragma once
// Where the time of a run goes: sums for each step, and a trace of what was done when.

#include <tbb/enumerable_thread_specific.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace ggufmill {

struct Slab;
struct SlabPart;

enum class ProfileStep { kRead, kDecode, kCheck, kEncode, kMeasure, kWrite };
inline constexpr std::size_t kProfileSteps = 6;
const char* name_of(ProfileStep step);

// Thread-safe while the run goes on; what gives results is for after it.
class Profile {
 public:
  using Clock = std::chrono::steady_clock;

  struct Sum {
    std::uint64_t calls = 0;
    double seconds = 0;  // of all calls
  };
  using Sums = std::array<Sum, kProfileSteps>;
  struct Summary {
    Sums worked;       // of the threads that convert, each of its own time
    Sums transferred;  // in the background, several at once
    double wait = 0;   // seconds in which threads that convert had nothing to convert
    double wall = 0;
    unsigned threads = 0;
  };

  Profile();
  ~Profile();

  // `step` of a part of a slab (of a read: the first) took from `start` until now: on this thread, or in the
  // background. What there is no memory for is left out.
  void worked(ProfileStep step, const Slab& slab, const SlabPart& part, Clock::time_point start) noexcept;
  void transferred(ProfileStep step, const Slab& slab, const SlabPart& part, Clock::time_point start) noexcept;
  // The run is over.
  void finish(unsigned threads);

  Summary summary() const;
  // Trace events as Chrome's format has them, which Perfetto (ui.perfetto.dev) opens: a line for each thread, one for
  // the reads and writes of each slab. Of a long run the first kMostEvents are in it; the sums count all.
  std::string trace() const;

 private:
  static constexpr std::uint64_t kMostEvents = 1 << 18;  // 12 MiB

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
};

// Measures a step on this thread from its making to its end, where the run is profiled.
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
