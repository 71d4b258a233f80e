#include "pipeline/graph/profile_picture.h"

#include <chrono>
#include <string>
#include <thread>

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("a picture shows what idle threads wait for") {
  Profile profile;
  const auto start = Profile::Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  profile.alone(ProfileStep::kCut, start);
  profile.enter(ProfilePhase::kClose);
  const auto closing = Profile::Clock::now();
  while (Profile::Clock::now() - start < 2 * (closing - start)) std::this_thread::sleep_for(closing - start);
  profile.finish(1);
  const ProfilePicture picture = draw(profile);
  CHECK(picture.bars.find("████████") != std::string::npos);
  CHECK(picture.bars.ends_with("        "));
  CHECK(picture.reasons.find("        ") != std::string::npos);
  CHECK(picture.reasons.ends_with("cccccccc"));
  CHECK(picture.reasons.size() == 64);
}

TEST_CASE("what threads waited for is listed, most first") {
  Profile::Summary sums;
  CHECK(describe_idle(sums) == "");
  sums.wall = 10;
  sums.threads = 2;
  CHECK(describe_idle(sums) == "idle 0.0 %");
  sums.idle[static_cast<std::size_t>(IdleReason::kOpen)] = 1;
  sums.idle[static_cast<std::size_t>(IdleReason::kWrites)] = 3;
  sums.wait = 4;
  CHECK(describe_idle(sums) == "idle 20.0 %: writes 15.0 %, opening 5.0 %");
}
