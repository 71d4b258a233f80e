#include "pipeline/api/publish/card/recommendation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace ggufmill {
namespace {

bool is_measured(const CardFile& file) {
  return file.part == kTextPart && !file.is_base && file.quality && std::isfinite(file.quality->divergence);
}

// Smallest first; among files of the same size, the best.
auto by_size(const CardFile& file) { return std::tuple(file.bytes, file.quality->divergence); }

const CardFile* smallest_within(std::span<const CardFile> files, double limit) {
  const CardFile* smallest = nullptr;
  for (const CardFile& file : files) {
    if (!is_measured(file) || file.quality->divergence > limit) continue;
    if (smallest == nullptr || by_size(file) < by_size(*smallest)) smallest = &file;
  }
  return smallest;
}

}  // namespace

std::vector<const Recommendation*> recommended(std::span<const CardFile> files) {
  std::vector<const Recommendation*> found(files.size(), nullptr);
  const bool measured = std::ranges::any_of(files, is_measured);
  for (const Recommendation& level : recommendations()) {
    const CardFile* smallest = smallest_within(files, level.divergence);
    for (std::size_t i = 0; i < files.size(); ++i) {
      const bool fits =
          measured ? &files[i] == smallest : files[i].part == kTextPart && files[i].recipe == level.recipe;
      if (fits && found[i] == nullptr) found[i] = &level;
    }
  }
  return found;
}

std::string recommendation_rule(std::span<const CardFile> files) {
  if (std::ranges::none_of(files, is_measured)) return {};
  std::string limits;
  for (const Recommendation& level : recommendations()) {
    if (!limits.empty()) limits += &level == &recommendations().back() ? " and " : ", ";
    limits += fmt::format("{} ({})", level.divergence, level.note);
  }
  return "The notes name the smallest file whose mean divergence is at most " + limits + ".";
}

}  // namespace ggufmill
