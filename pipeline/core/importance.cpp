#include "pipeline/core/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

// An entry and one of its shares, for messages.
struct Named {
  const std::string& path;
  const std::string& name;
};

Error bad_number(const Named& share, std::string_view kind, std::uint64_t place, float value) {
  return input_error(share.path,
                     fmt::format("the entry of tensor {} contains {}: {} {}", quoted_name(share.name),
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

Status check(const Named& share, std::uint64_t first, std::span<const float> weights) {
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
  return bad_number(share, "value", first + static_cast<std::uint64_t>(bad - weights.begin()), *bad);
}

// Returns the elements [first, first + count) of an F32 extent.
Extent part_of(const Extent& extent, std::uint64_t first, std::uint64_t count) {
  return {extent.source, extent.offset + first * sizeof(float), count * sizeof(float), extent.big_endian};
}

// A contiguous run of an entry's numbers, starting at number `first` of `size` in total.
struct Place {
  std::uint64_t size, first;
};

void divide(std::span<float> sums, float count) {
  if (count > 0)
    for (float& sum : sums) sum /= count;
  else
    std::ranges::fill(sums, 1.0f);
}

// Divides the sums of each part that overlaps the run by a count, which `count_of` returns for the part's position
// among those that overlap the run.
template <class CountOf>
Status divide_parts(const Place& place, std::uint64_t parts, std::span<float> sums, CountOf count_of) {
  const std::uint64_t part = place.size / parts;
  std::uint64_t left = part - place.first % part;  // elements left in the part
  for (std::size_t i = 0; !sums.empty(); ++i, left = part) {
    BOOST_OUTCOME_TRY(const float count, count_of(i));
    const auto here = sums.first(std::min<std::uint64_t>(left, sums.size()));
    divide(here, count);
    sums = sums.subspan(here.size());
  }
  return ok();
}

Status weights_alone(const Named& named, const ImportanceRun& run, const Place& place, ImportanceNumbers& numbers) {
  if (run.parts == 0) {
    if (run.scale.calls > 0) divide(numbers.sums, static_cast<float>(run.scale.calls));
  } else {
    const std::uint64_t first_part = place.first / (place.size / run.parts);
    BOOST_OUTCOME_TRY(divide_parts(place, run.parts, numbers.sums, [&](std::size_t i) -> Result<float> {
      const float count = numbers.counts[i];
      if (!(std::fabs(count) < 0x1p63f)) return bad_number(named, "count", first_part + i, count);
      return static_cast<float>(std::llround(count));  // counts are integers stored as floats
    }));
  }
  return check(named, place.first, numbers.sums);
}

Result<std::vector<float>> added_weights(const std::string& name, std::span<const ImportanceRun> runs,
                                         const Place& place, const std::vector<ImportanceNumbers>& numbers) {
  std::vector<float> weights(numbers[0].sums.size());
  std::uint64_t parts = 1;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    BOOST_OUTCOME_TRY(check({runs[i].path, name}, place.first, numbers[i].sums));
    add_sums(runs[i].scale, numbers[i].sums, weights);
    parts = std::max(parts, runs[i].parts);
  }
  BOOST_OUTCOME_TRY(divide_parts(place, parts, weights, [&](std::size_t part) -> Result<float> {
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::vector<float>& counts = numbers[i].counts;
      const float count = counts.empty() ? 0 : counts[runs[i].parts == 1 ? 0 : part];
      BOOST_OUTCOME_TRY(const std::int64_t more, counted(runs[i], name, count));
      tokens += more;
    }
    return static_cast<float>(tokens);
  }));
  BOOST_OUTCOME_TRY(check({runs[0].path, name}, place.first, weights));
  return weights;
}

}  // namespace

Result<std::int64_t> counted(const ImportanceRun& run, const std::string& name, float count) {
  const double seen = run.parts == 0 ? static_cast<double>(run.scale.calls) * run.scale.chunk_size : std::round(count);
  const double weighted = std::round(seen * run.scale.weight);
  if (seen >= 0 && seen < 0x1p53 && weighted >= 0x1p53)
    return input_error(run.path,
                       fmt::format("its weight, {}, is too large: it makes the count of tensor {}, {}, out of range",
                                   run.scale.weight, quoted_name(name), seen),
                       "give it a smaller weight: only the ratio of the weights matters");
  if (!(weighted >= 0 && weighted < 0x1p53))
    return input_error(
        run.path,
        fmt::format("the entry of tensor {} has a count of {}, which is out of range", quoted_name(name), seen),
        "recreate the importance file");
  return static_cast<std::int64_t>(weighted);
}

void add_sums(const ImportanceScale& scale, std::span<const float> sums, std::span<float> into) {
  const auto weight = static_cast<float>(scale.weight);
  const float tokens = scale.chunk_size == 0 ? 1.0f : static_cast<float>(scale.chunk_size);
  for (std::size_t i = 0; i < sums.size(); ++i) into[i] += sums[i] * tokens * weight;
}

Result<std::vector<float>> to_weights(const std::string& name, std::uint64_t size, std::span<const ImportanceRun> runs,
                                      std::uint64_t first, std::vector<ImportanceNumbers>&& numbers) {
  const Place place{size, first};
  if (runs.size() > 1 || !runs[0].scale.is_alone()) return added_weights(name, runs, place, numbers);
  BOOST_OUTCOME_TRY(weights_alone({runs[0].path, name}, runs[0], place, numbers[0]));
  return std::move(numbers[0].sums);
}

bool Importance::is_substituted(std::uint64_t matrix) const {
  return substitute && std::ranges::binary_search(substituted, matrix % matrices);
}

std::vector<Importance::Ranges> Importance::ranges(std::uint64_t matrix) const {
  return is_substituted(matrix) ? std::vector<Ranges>() : own_ranges(matrix);
}

std::vector<Importance::Ranges> Importance::own_ranges(std::uint64_t matrix) const {
  std::vector<Ranges> all;
  const std::uint64_t first = matrix % matrices * columns;
  for (const ImportanceShare& share : shares) {
    Ranges& ranges = all.emplace_back(Ranges{part_of(share.sums, first, columns), {}});
    if (share.counts.bytes == 0) continue;
    const std::uint64_t part = columns * matrices / (share.counts.bytes / sizeof(float));
    const std::uint64_t first_part = first / part;
    ranges.counts = part_of(share.counts, first_part, (first + columns - 1) / part - first_part + 1);
  }
  return all;
}

Result<std::vector<float>> Importance::to_weights(std::uint64_t matrix,
                                                  std::vector<ImportanceNumbers>&& numbers) const {
  if (is_substituted(matrix)) return *substitute;
  std::vector<ImportanceRun> runs;
  for (const ImportanceShare& share : shares)
    runs.push_back({share.sums.source->path, share.scale, share.counts.bytes / sizeof(float)});
  return ggufmill::to_weights(name, columns * matrices, runs, matrix % matrices * columns, std::move(numbers));
}

}  // namespace ggufmill
