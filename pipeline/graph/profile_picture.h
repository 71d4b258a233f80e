#pragma once
// A profile as text: how many threads work over the run's time, and what the others wait for.

#include <string>

#include "pipeline/graph/profile.h"

namespace ggufmill {

// Two lines of equal length for the run's time from left to right: how many of the threads work, as bars, and, where an
// eighth of them or more are idle, the first letter of what most of these wait for.
struct ProfilePicture {
  std::string bars;     // UTF-8
  std::string reasons;  // ends with the last letter
};
ProfilePicture draw(const Profile& profile);

// Returns which part of the threads' time is idle and why, most first: "idle 9.1 %: writes 6.0 %, opening 3.1 %".
std::string describe_idle(const Profile::Summary& sums);

}  // namespace ggufmill
