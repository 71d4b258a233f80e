#include "pipeline/graph/profile_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace ggufmill {

ProfilePicture draw(const Profile& profile) {
  constexpr std::size_t kColumns = 64;
  constexpr std::string_view kBars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr double kFull = std::size(kBars) - 1;
  ProfilePicture picture;
  for (const Profile::Moment& moment : profile.moments(kColumns)) {
    const double busy = std::clamp(moment.busy, 0.0, 1.0);
    picture.bars += kBars[static_cast<std::size_t>(busy * kFull + 0.5)];
    const auto most = std::ranges::max_element(moment.idle) - moment.idle.begin();
    picture.reasons += busy > 1 - 1 / kFull ? ' ' : name_of(static_cast<IdleReason>(most))[0];
  }
  picture.reasons.resize(picture.reasons.find_last_not_of(' ') + 1);
  return picture;
}

std::string describe_idle(const Profile::Summary& sums) {
  const double of_threads = sums.wall * sums.threads;
  if (of_threads <= 0) return "";
  std::vector<std::pair<double, std::string_view>> parts;
  for (std::size_t i = 0; i < kIdleReasons; ++i)
    parts.emplace_back(100 * sums.idle[i] / of_threads, name_of(static_cast<IdleReason>(i)));
  std::ranges::stable_sort(parts, std::greater(), [](const auto& each) { return each.first; });
  std::string text = fmt::format("idle {:.1f} %", 100 * sums.wait / of_threads);
  const char* separator = ": ";
  for (const auto& [percent, reason] : parts) {
    if (percent < 0.05) break;
    text += fmt::format("{}{} {:.1f} %", separator, reason, percent);
    separator = ", ";
  }
  return text;
}

}  // namespace ggufmill
