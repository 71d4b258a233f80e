#include "tests/bench/workspace.h"

#include <unistd.h>

#include <algorithm>

namespace ggufmill::bench {
namespace {

// So many that the floats alone are twice as large as the last-level cache.
std::size_t windows_of(Place place) {
  if (place == Place::kCache) return 1;
  return std::max<std::size_t>(2, 2 * last_cache_bytes() / (kWeights * sizeof(float)));
}

}  // namespace

std::string name_of(Place place) { return place == Place::kCache ? "L2" : "memory"; }

std::size_t last_cache_bytes() {
  const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{32} << 20;
}

Workspace::Workspace(std::span<const std::byte> source, std::size_t target_bytes, Place place)
    : source_bytes_(source.size()), target_bytes_(target_bytes), windows_(windows_of(place)) {
  sources_.reserve(windows_ * source_bytes_);
  for (std::size_t i = 0; i < windows_; ++i) sources_.insert(sources_.end(), source.begin(), source.end());
  targets_.resize(windows_ * target_bytes_);
}

ggufmill_call Workspace::next(const float* importance) {
  at_ = (at_ + 1) % windows_;
  return {sources_.data() + at_ * source_bytes_, target().data(), kRows, kCols, importance};
}

}  // namespace ggufmill::bench
