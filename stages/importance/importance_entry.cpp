#include "stages/importance/importance_entry.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::size_t kPiece = 64 * 1024;  // weights checked at once

void divide(std::span<float> sums, float by) {
  for (float& sum : sums) sum /= by;
}

Error bad_number(const ImportanceEntry& entry, std::string_view kind, std::uint64_t place, float value) {
  return input_error(entry.sums.file->path(),
                     fmt::format("the entry of tensor {} holds {}: {} {}", quoted_name(entry.name),
                                 std::isnan(value)   ? "NaN"
                                 : std::isinf(value) ? "an infinite number"
                                 : value < 0         ? "a negative number"
                                                     : "a number that is too large",
                                 kind, place),
                     "make the importance file again");
}

// Counts are whole numbers that are kept as floats.
Result<float> whole_count(const ImportanceEntry& entry, std::uint64_t place, float count) {
  if (!(std::fabs(count) < 0x1p63f)) return bad_number(entry, "count", place, count);
  return static_cast<float>(std::lround(count));
}

Status divide_by_counts(const ImportanceEntry& entry, std::uint64_t first, std::span<float> sums) {
  const std::uint64_t part = entry.size() / entry.counts.count;
  const std::uint64_t first_part = first / part;
  std::vector<float> counts((first + sums.size() - 1) / part - first_part + 1);
  BOOST_OUTCOME_TRY(entry.counts.read(first_part, counts));
  std::uint64_t left = part - first % part;  // in the part
  for (std::size_t i = 0; i < counts.size(); ++i, left = part) {
    BOOST_OUTCOME_TRY(const float count, whole_count(entry, first_part + i, counts[i]));
    const auto here = sums.first(std::min<std::uint64_t>(left, sums.size()));
    if (count > 0)
      divide(here, count);
    else
      std::fill(here.begin(), here.end(), 1.0f);
    sums = sums.subspan(here.size());
  }
  return ok();
}

// As numbers, the bits of everything negative, infinite or NaN are these and more; only those of -0 are no harm.
constexpr std::uint32_t kInfinityBits = 0x7f800000;

Status check(const ImportanceEntry& entry, std::uint64_t first, std::span<const float> weights) {
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
  return bad_number(entry, "value", first + static_cast<std::uint64_t>(bad - weights.begin()), *bad);
}

struct HashFree {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

}  // namespace

Status ImportanceEntry::weights(std::uint64_t first, std::span<float> into) const {
  if (into.empty()) return ok();
  BOOST_OUTCOME_TRY(sums.read(first, into));
  if (counts.file) {
    BOOST_OUTCOME_TRY(divide_by_counts(*this, first, into));
  } else if (calls > 0) {
    divide(into, static_cast<float>(calls));
  }
  return check(*this, first, into);
}

Result<std::string> fingerprint_weights(const ImportanceEntry& entry) {
  const std::unique_ptr<XXH3_state_t, HashFree> state(XXH3_createState());
  if (!state) return Error{ExitCode::kTransient, "", "no memory for a hash", "", ""};
  XXH3_128bits_reset(state.get());
  std::vector<float> piece(std::min<std::uint64_t>(kPiece, entry.size()));
  for (std::uint64_t first = 0; first < entry.size(); first += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), entry.size() - first));
    BOOST_OUTCOME_TRY(entry.weights(first, piece));
    XXH3_128bits_update(state.get(), piece.data(), piece.size() * sizeof(float));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace ggufmill
