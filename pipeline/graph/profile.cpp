#include "pipeline/graph/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/string.hpp>
#include <exception>
#include <numeric>

#include "pipeline/graph/slab.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

double seconds_between(Profile::Clock::time_point start, Profile::Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

}  // namespace

const char* name_of(ProfileStep step) {
  static constexpr std::array kNames{"read",  "decode", "check", "encode", "measure",
                                     "write", "cut",    "make",  "record", "free"};
  static_assert(kNames.size() == kProfileSteps);
  return kNames[static_cast<std::size_t>(step)];
}

const char* name_of(IdleReason reason) {
  static constexpr std::array kNames{"opening", "reads", "writes", "threads", "last slabs", "closing"};
  static_assert(kNames.size() == kIdleReasons);
  return kNames[static_cast<std::size_t>(reason)];
}

Profile::Profile() : begin_(Clock::now()), end_(begin_) {
  phases_.fill(Clock::time_point::max());
  enter(ProfilePhase::kOpen);
}
Profile::~Profile() = default;

void Profile::add(Track& track, ProfileStep step, const Slab& slab, const SlabPart& part, Clock::time_point start) {
  const Clock::time_point end = Clock::now();
  track.sums[static_cast<std::size_t>(step)].add(seconds_between(start, end));
  Timeline& line = &track == &transfers_ && step == ProfileStep::kWrite ? writes_ : track.timeline;
  line.add(seconds_at(start), seconds_at(end));
  if (events_.fetch_add(1, std::memory_order_relaxed) < kMaxEvents)
    track.events.push_back({step, slab.ordinal, &part.step->step->name, start, end});
}

void Profile::worked(ProfileStep step, const Slab& slab, const SlabPart& part, Clock::time_point start) noexcept try {
  add(tracks_.local(), step, slab, part, start);
} catch (const std::exception&) {
}

void Profile::transferred(ProfileStep step, const Slab& slab, const SlabPart& part, Clock::time_point start) noexcept
    try {
  const std::scoped_lock lock(mutex_);
  add(transfers_, step, slab, part, start);
} catch (const std::exception&) {
}

void Profile::alone(ProfileStep step, Clock::time_point start) noexcept {
  const Clock::time_point end = Clock::now();
  alone_[static_cast<std::size_t>(step)].add(seconds_between(start, end));
  alone_line_.add(seconds_at(start), seconds_at(end));
}

void Profile::finish(unsigned threads) {
  end_ = Clock::now();
  threads_ = threads;
}

double Profile::seconds_of(const Sums& sums) {
  return std::accumulate(sums.begin(), sums.end(), 0.0, [](double all, const Sum& sum) { return all + sum.seconds; });
}

Profile::Summary Profile::summary() const {
  Summary all;
  all.transferred = transfers_.sums;
  all.alone = alone_;
  all.wall = seconds_between(begin_, end_);
  all.threads = threads_;
  for (const Track& track : tracks_)
    for (std::size_t i = 0; i < kProfileSteps; ++i) {
      all.worked[i].calls += track.sums[i].calls;
      all.worked[i].seconds += track.sums[i].seconds;
    }
  const double busy = seconds_of(all.worked) + seconds_of(all.alone);
  all.wait = std::max(all.wall * threads_ - busy, 0.0);
  constexpr std::size_t kParts = 1000;
  double sum = 0;
  for (const Moment& moment : moments(kParts))
    for (std::size_t i = 0; i < kIdleReasons; ++i) {
      all.idle[i] += moment.idle[i];
      sum += moment.idle[i];
    }
  for (double& each : all.idle) each *= sum > 0 ? all.wait / sum : 0;
  return all;
}

// The timelines of all threads together.
struct Profile::Timelines {
  Timeline busy, reads, writes;
};

Profile::Timelines Profile::timelines() const {
  Timelines all{alone_line_, transfers_.timeline, writes_};
  for (const Track& track : tracks_) all.busy.add(track.timeline);
  return all;
}

Profile::Moment Profile::moment(const Timelines& lines, double begin, double end) const {
  Moment all;
  const double threads = std::max(threads_, 1u), length = end - begin;
  for (std::size_t i = 0; i < kProfilePhases; ++i) {
    Clock::time_point next = Clock::time_point::max();  // when a later phase began
    for (std::size_t j = i + 1; j < kProfilePhases; ++j) next = std::min(next, phases_[j]);
    const double from = i == 0 ? begin : std::max(begin, seconds_at(phases_[i]));
    const double to = std::min(end, seconds_at(next));
    if (from >= to) continue;
    const double share = (to - from) / length, busy = lines.busy.between(from, to) / (threads * length);
    const double idle = std::max(share - busy, 0.0);
    all.busy += std::min(busy, share);
    const auto add = [&](IdleReason reason, double part) { all.idle[static_cast<std::size_t>(reason)] += part * idle; };
    const auto phase = static_cast<ProfilePhase>(i);
    const double reads = lines.reads.between(from, to), writes = lines.writes.between(from, to);
    if (phase == ProfilePhase::kOpen) {
      add(IdleReason::kOpen, 1);
    } else if (phase == ProfilePhase::kDrain) {
      add(IdleReason::kDrain, 1);
    } else if (phase == ProfilePhase::kClose) {
      add(IdleReason::kClose, 1);
    } else if (reads + writes > 0) {
      add(IdleReason::kReads, reads / (reads + writes));
      add(IdleReason::kWrites, writes / (reads + writes));
    } else {
      add(IdleReason::kThreads, 1);
    }
  }
  return all;
}

std::vector<Profile::Moment> Profile::moments(std::size_t parts) const {
  std::vector<Moment> all;
  const double length = seconds_between(begin_, end_) / static_cast<double>(parts);
  const Timelines lines = timelines();
  for (std::size_t i = 0; length > 0 && i < parts; ++i)
    all.push_back(moment(lines, static_cast<double>(i) * length, static_cast<double>(i + 1) * length));
  return all;
}

double Profile::seconds_at(Clock::time_point time) const { return seconds_between(begin_, time); }

double Profile::microseconds(Clock::time_point time) const { return 1e6 * seconds_at(time); }

// Perfetto stacks the series of a counter.
void Profile::add_counters(std::string& json) const {
  constexpr std::size_t kParts = 500;
  const std::vector<Moment> all = moments(kParts);
  for (std::size_t i = 0; i < all.size(); ++i) {
    json += fmt::format(R"(,
{{"name":"threads","ph":"C","pid":1,"ts":{:.3f},"args":{{"working":{:.3f})",
                        1e6 * seconds_between(begin_, end_) * static_cast<double>(i) / kParts, threads_ * all[i].busy);
    for (std::size_t j = 0; j < kIdleReasons; ++j)
      json += fmt::format(R"(,"wait: {}":{:.3f})", name_of(static_cast<IdleReason>(j)), threads_ * all[i].idle[j]);
    json += "}}";
  }
}

void Profile::add_span(std::string& json, const Event& event, std::size_t thread) const {
  json +=
      fmt::format(R"(,
{{"name":"{}","cat":"convert","ph":"X","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"tensor":{},"slab":{}}}}})",
                  name_of(event.step), thread, microseconds(event.start), 1e6 * seconds_between(event.start, event.end),
                  to_json_text(boost::json::string(*event.tensor)), event.ordinal);
}

// Reads and writes overlap, so each slab gets its own track; the begin and end events are matched by the slab's number.
void Profile::add_transfer(std::string& json, const Event& event) const {
  const char* name = name_of(event.step);
  json += fmt::format(R"(,
{{"name":"{0}","cat":"{0}","ph":"b","pid":1,"tid":0,"id":{1},"ts":{2:.3f},"args":{{"tensor":{3}}}}},
{{"name":"{0}","cat":"{0}","ph":"e","pid":1,"tid":0,"id":{1},"ts":{4:.3f}}})",
                      name, event.ordinal, microseconds(event.start), to_json_text(boost::json::string(*event.tensor)),
                      microseconds(event.end));
}

std::string Profile::totals(const Sums& sums) {
  std::string json;
  for (std::size_t i = 0; i < kProfileSteps; ++i)
    if (sums[i].calls > 0)
      json += fmt::format(R"({}"{}":{{"calls":{},"seconds":{:.6f}}})", json.empty() ? "" : ",",
                          name_of(static_cast<ProfileStep>(i)), sums[i].calls, sums[i].seconds);
  return "{" + json + "}";
}

std::string Profile::totals() const {
  const Summary sums = summary();
  const std::uint64_t events = events_;
  std::string idle;
  for (std::size_t i = 0; i < kIdleReasons; ++i)
    idle += fmt::format(R"({}"{}":{:.6f})", i == 0 ? "" : ",", name_of(static_cast<IdleReason>(i)), sums.idle[i]);
  return fmt::format(
      R"("seconds":{:.6f},"threads":{},"wait":{:.6f},"idle":{{{}}},"worked":{},"transferred":{},"alone":{},"found":{},"events_skipped":{})",
      sums.wall, sums.threads, sums.wait, idle, totals(sums.worked), totals(sums.transferred), totals(sums.alone),
      to_json_text(boost::json::array(findings_.begin(), findings_.end())), events - std::min(events, kMaxEvents));
}

std::string Profile::trace() const {
  std::string json = "{\"otherData\":{" + totals() + "},\n\"traceEvents\":[\n";
  json += R"({"name":"process_name","ph":"M","pid":1,"args":{"name":"ggufmill"}})";
  std::size_t thread = 0;
  for (const Track& track : tracks_) {
    json += fmt::format(
        ",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":{0},\"args\":{{\"name\":\"thread {0}\"}}}}",
        ++thread);
    for (const Event& event : track.events) add_span(json, event, thread);
  }
  for (const Event& event : transfers_.events) add_transfer(json, event);
  add_counters(json);
  return json + "\n]}\n";
}

ProfiledStep::ProfiledStep(ProfileStep step, const Slab& slab, const SlabPart& part)
    : step_(step), slab_(slab), part_(part) {
  if (slab_.profile) start_ = Profile::Clock::now();
}

ProfiledStep::~ProfiledStep() {
  if (slab_.profile) slab_.profile->worked(step_, slab_, part_, start_);
}

}  // namespace ggufmill
