#include "pipeline/graph/profile.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>

#include "pipeline/graph/slab.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

// A slab of a tensor with the given name.
struct NamedSlab {
  explicit NamedSlab(const std::string& name) {
    step.name = name;
    bound.step = &step;
    part.step = &bound;
    slab.ordinal = 7;
  }
  Step step;
  BoundStep bound;
  SlabPart part;
  Slab slab;
};

boost::json::value parsed(const Profile& profile) { return boost::json::parse(profile.trace()); }

}  // namespace

TEST_CASE("steps are counted, and what is left of the threads' time is waiting") {
  NamedSlab named("a");
  Profile profile;
  named.slab.profile = &profile;
  { const ProfiledStep step(ProfileStep::kEncode, named.slab, named.part); }
  { const ProfiledStep step(ProfileStep::kEncode, named.slab, named.part); }
  profile.transferred(ProfileStep::kRead, named.slab, named.part, Profile::Clock::now());
  profile.finish(4);
  const Profile::Summary sums = profile.summary();
  CHECK(sums.worked[static_cast<std::size_t>(ProfileStep::kEncode)].calls == 2);
  CHECK(sums.transferred[static_cast<std::size_t>(ProfileStep::kRead)].calls == 1);
  const double busy = sums.worked[static_cast<std::size_t>(ProfileStep::kEncode)].seconds;
  CHECK(std::abs(sums.wait + busy - 4 * sums.wall) < 1e-9);
}

TEST_CASE("work of one thread at a time is counted separately, and not as waiting") {
  Profile profile;
  profile.alone(ProfileStep::kMake, Profile::Clock::now());
  profile.alone(ProfileStep::kFree, Profile::Clock::now());
  profile.finish(1);
  const Profile::Summary sums = profile.summary();
  CHECK(sums.alone[static_cast<std::size_t>(ProfileStep::kMake)].calls == 1);
  CHECK(Profile::seconds_of(sums.worked) == 0);
  CHECK(std::abs(sums.wait + Profile::seconds_of(sums.alone) - sums.wall) < 1e-9);
  CHECK(parsed(profile).at("otherData").at("alone").at("free").at("calls") == 1);
}

TEST_CASE("a run in moments shows what threads wait for in each phase") {
  using namespace std::chrono_literals;
  constexpr auto kLong = 20ms;
  NamedSlab named("a");
  const auto pass = [&] { std::this_thread::sleep_for(kLong); };
  const auto idle = [](const auto& of, IdleReason reason) { return of.idle[static_cast<std::size_t>(reason)]; };
  Profile profile;
  pass();
  profile.enter(ProfilePhase::kConvert);
  const auto start = Profile::Clock::now();
  pass();
  profile.worked(ProfileStep::kEncode, named.slab, named.part, start);  // one of two threads
  profile.transferred(ProfileStep::kWrite, named.slab, named.part, start);
  const auto read = Profile::Clock::now();
  pass();
  profile.transferred(ProfileStep::kRead, named.slab, named.part, read);
  pass();  // nothing is under way
  profile.enter(ProfilePhase::kDrain);
  pass();
  profile.enter(ProfilePhase::kClose);
  pass();
  profile.finish(2);
  const Profile::Summary sums = profile.summary();
  double wait = 0;
  for (const double each : sums.idle) {
    CHECK(each > 0.015);
    wait += each;
  }
  CHECK(std::abs(wait - sums.wait) < 1e-9);
  const std::vector<Profile::Moment> moments = profile.moments(60);
  REQUIRE(moments.size() == 60);
  CHECK(idle(moments.front(), IdleReason::kOpen) > 0.9);
  CHECK(idle(moments.back(), IdleReason::kClose) > 0.9);
  for (const Profile::Moment& moment : moments) {
    double all = moment.busy;
    for (const double each : moment.idle) all += each;
    CHECK(std::abs(all - 1) < 1e-6);
  }
}

TEST_CASE("a trace has a span for each step and a pair for each transfer") {
  NamedSlab named("blk.0.ffn_up.weight");
  Profile profile;
  profile.worked(ProfileStep::kDecode, named.slab, named.part, Profile::Clock::now());
  profile.transferred(ProfileStep::kWrite, named.slab, named.part, Profile::Clock::now());
  profile.finish(1);
  std::string phases;
  const boost::json::value trace = parsed(profile);
  for (const auto& event : trace.at("traceEvents").as_array()) phases += event.at("ph").as_string().c_str();
  CHECK(std::erase(phases, 'C') != 0);
  CHECK(phases == "MMXbe");
  CHECK(trace.at("otherData").at("transferred").at("write").at("calls") == 1);
}

TEST_CASE("a tensor's name cannot break a trace") {
  NamedSlab named("\"}\n\xff</script>");
  Profile profile;
  profile.worked(ProfileStep::kDecode, named.slab, named.part, Profile::Clock::now());
  const boost::json::value trace = parsed(profile);
  CHECK(trace.at("traceEvents").as_array().back().at("args").at("tensor") == "\"}\n\\xff</script>");
}
