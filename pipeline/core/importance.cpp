#include "pipeline/core/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

Error bad_number(const ImportanceRun& run, std::string_view kind, std::uint64_t place, float value) {
  return input_error(run.path,
                     fmt::format("the entry of tensor {} contains {}: {} {}", quoted_name(run.name),
                                 std::isnan(value)   ? "NaN"
                                 : std::isinf(value) ? "an infinite number"
                                 : value < 0         ? "a negative number"
                                                     : "a number that is too large",
                                 kind, place),
                     "recreate the importance file");
}

// Read as an unsigned integer, the bits of every negative, infinite or NaN value are at least this number. Of these,
// only -0 is harmless.
constexpr std::uint32_t kInfinityBits = 0x7f800000;

Status check(const ImportanceRun& run, std::uint64_t first, std::span<const float> weights) {
  std::uint32_t most = 0;
  for (const float weight : weights) {
    std::uint32_t bits;
    std::memcpy(&bits, &weight, sizeof bits);
    most = std::max(most, bits);
  }
  if (most < kInfinityBits) return ok();
  const auto bad = std::find_if_not(weights.begin(), weights.end(),
                                    [](float weight) { return std::isfinite(weight) && weight >= 0; });
  if (bad == weights.end()) return ok();
  return bad_number(run, "value", first + static_cast<std::uint64_t>(bad - weights.begin()), *bad);
}

// Returns the elements [first, first + count) of an F32 extent.
Extent part_of(const Extent& extent, std::uint64_t first, std::uint64_t count) {
  return {extent.source, extent.offset + first * sizeof(float), count * sizeof(float), extent.big_endian};
}

}  // namespace

Status to_weights(const ImportanceRun& run, std::uint64_t first, std::span<const float> counts, std::span<float> sums) {
  const std::span<const float> weights = sums;
  if (run.parts == 0) {
    if (run.calls > 0)
      for (float& sum : sums) sum /= static_cast<float>(run.calls);
    return check(run, first, weights);
  }
  const std::uint64_t part = run.size / run.parts, first_part = first / part;
  std::uint64_t left = part - first % part;  // elements left in the part
  for (std::size_t i = 0; i < counts.size(); ++i, left = part) {
    if (!(std::fabs(counts[i]) < 0x1p63f)) return bad_number(run, "count", first_part + i, counts[i]);
    // Counts are integers stored as floats.
    const auto count = static_cast<float>(std::lround(counts[i]));
    const auto here = sums.first(std::min<std::uint64_t>(left, sums.size()));
    if (count > 0)
      for (float& sum : here) sum /= count;
    else
      std::ranges::fill(here, 1.0f);
    sums = sums.subspan(here.size());
  }
  return check(run, first, weights);
}

Importance::Ranges Importance::ranges(std::uint64_t matrix) const {
  const std::uint64_t first = matrix % matrices * columns;
  Ranges ranges{part_of(sums, first, columns), {}};
  if (counts.bytes == 0) return ranges;
  const std::uint64_t part = columns * matrices / (counts.bytes / sizeof(float));
  const std::uint64_t first_part = first / part;
  ranges.counts = part_of(counts, first_part, (first + columns - 1) / part - first_part + 1);
  return ranges;
}

Status Importance::to_weights(std::uint64_t matrix, std::span<const float> matrix_counts,
                              std::span<float> matrix_sums) const {
  const ImportanceRun run{sums.source->path, name, columns * matrices, counts.bytes / sizeof(float), calls};
  return ggufmill::to_weights(run, matrix % matrices * columns, matrix_counts, matrix_sums);
}

}  // namespace ggufmill
