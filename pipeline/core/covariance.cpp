#include "pipeline/core/covariance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "pipeline/core/rows.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr const char* kHelp = "collect the covariance again, or take another copy of the file";

// Returns n (n - 1) / 2; nothing if it exceeds 64 bits.
std::optional<std::uint64_t> pairs_of(std::uint64_t n) {
  const std::uint64_t even = n % 2 == 0 ? n : n - 1, odd = n % 2 == 0 ? n - 1 : n;
  std::uint64_t pairs = 0;
  if (n == 0) return 0;
  if (__builtin_mul_overflow(even / 2, odd, &pairs)) return std::nullopt;
  return pairs;
}

std::string describe_number(float value) {
  return std::isnan(value) ? "NaN" : std::isinf(value) ? "an infinite number" : fmt::format("{}", value);
}

}  // namespace

CorrelationPacking::CorrelationPacking(std::uint64_t columns, std::uint64_t block)
    : columns_(columns), block_(block == 0 ? std::max<std::uint64_t>(columns, 1) : block) {}

std::optional<std::uint64_t> CorrelationPacking::length() const {
  const std::optional<std::uint64_t> of_block = pairs_of(std::min(block_, columns_)),
                                     of_rest = pairs_of(columns_ % block_);
  std::uint64_t length = 0, bytes = 0;
  if (!of_block || !of_rest || __builtin_mul_overflow(columns_ / block_, *of_block, &length) ||
      __builtin_add_overflow(length, *of_rest, &length) ||
      __builtin_mul_overflow(length, sizeof(std::uint16_t), &bytes))
    return std::nullopt;
  return length;
}

CorrelatedColumns CorrelationPacking::columns_of(std::uint64_t block) const {
  const std::uint64_t first = block * block_;
  return {first, std::min(block_, columns_ - first), block == 0 ? 0 : block * *pairs_of(block_)};
}

std::uint64_t CorrelationPacking::row_start(std::uint64_t count, std::uint64_t row) {
  return row == 0 ? 0 : row * (count - 1) - row * (row - 1) / 2;
}

bool Covariance::is_used(std::uint64_t matrix) const { return !std::ranges::binary_search(unused, matrix % matrices); }

Extent Covariance::sums_of(std::uint64_t matrix) const {
  const std::uint64_t bytes = columns * sizeof(float);
  return {sums.source, sums.offset + matrix % matrices * bytes, bytes, sums.big_endian};
}

Extent Covariance::correlations_of(std::uint64_t matrix) const {
  const std::uint64_t bytes = packing().length().value_or(0) * sizeof(std::uint16_t);
  return {correlations.source, correlations.offset + (is_pooled ? 0 : matrix % matrices * bytes), bytes,
          correlations.big_endian};
}

Extent Covariance::vectors_of(std::uint64_t matrix) const {
  const std::uint64_t bytes = held_out * columns * sizeof(std::uint16_t);
  return {vectors.source, vectors.offset + matrix % matrices * bytes, bytes, vectors.big_endian};
}

std::string Covariance::key() const {
  return fmt::format("{} {} {} {} {} {} {} {} {} {}{}", correlations.source->path, correlations.source->bytes,
                     correlations.source->header_hash, correlations.source->modified, correlations.offset, sums.offset,
                     columns, matrices, block, fmt::join(unused, ","),
                     held_out == 0 ? "" : fmt::format(" {} {}", held_out, vectors.offset));
}

// While it is made, a tile has numbers of 64 bits. There is also room for the correlations of a row of tiles, which are
// read at a time, and for four numbers per column.
std::uint64_t Covariance::metric_bytes() const {
  const CorrelationPacking packed = packing();
  const auto bytes_of = [](std::uint64_t count) {
    const std::uint64_t tiles = count / kMetricTile + (count % kMetricTile != 0);
    return capped_product(capped_product(tiles, capped_sum(tiles, 1)) / 2, kMetricTile * kMetricTile * sizeof(double));
  };
  const std::uint64_t whole = capped_product(columns / packed.block(), bytes_of(std::min(packed.block(), columns)));
  const std::uint64_t tiles = capped_sum(whole, bytes_of(columns % packed.block()));
  const std::uint64_t rows = capped_product(std::min(packed.block(), columns), kMetricTile * sizeof(std::uint16_t));
  const std::uint64_t known = capped_sum(capped_sum(tiles, rows), capped_product(columns, 4 * sizeof(double)));
  return capped_sum(known, capped_sum(vector_bytes(), trial_bytes()));
}

std::uint64_t Covariance::vector_bytes() const {
  return capped_product(capped_product(held_out, columns), sizeof(float));
}

// Rows of the trial have their values, those of Q8_0, and what the choice of levels needs.
std::uint64_t Covariance::trial_bytes() const {
  constexpr std::uint64_t kOfColumn = kLevelBytesPerColumn + sizeof(float) + 2;
  return held_out == 0 ? 0 : capped_product(columns, kTrialRows * kOfColumn);
}

Error Covariance::bad_correlation(std::uint64_t matrix, std::uint64_t place, float value) const {
  const Extent extent = correlations_of(matrix);
  Error error = input_error(extent.source->path,
                            fmt::format("the correlations of the input of {} contain {}; they are from -1 to 1",
                                        quoted_name(name), describe_number(value)),
                            kHelp);
  error.detail = fmt::format("at byte {:#x}", extent.offset + place * sizeof(std::uint16_t));
  return error;
}

Error Covariance::bad_sum(std::uint64_t matrix, std::uint64_t column, float value) const {
  const Extent extent = sums_of(matrix);
  Error error =
      input_error(extent.source->path,
                  fmt::format("the sums of squares of the input of {} contain {}; they are finite and not negative",
                              quoted_name(name), describe_number(value)),
                  kHelp);
  error.detail = fmt::format("at byte {:#x}", extent.offset + column * sizeof(float));
  return error;
}

Error Covariance::bad_vector(std::uint64_t matrix, std::uint64_t place, float value) const {
  const Extent extent = vectors_of(matrix);
  Error error = input_error(extent.source->path,
                            fmt::format("the held-out vectors of the input of {} contain {}; they are finite",
                                        quoted_name(name), describe_number(value)),
                            kHelp);
  error.detail = fmt::format("at byte {:#x}", extent.offset + place * sizeof(std::uint16_t));
  return error;
}

Encoder encoder_for(const Encoder& wanted, const TypeInfo& type, bool importance, const Covariance* covariance) {
  Encoder encoder = encoder_for(wanted, type, importance, covariance != nullptr);
  if (chooses_shrink(encoder) && covariance->held_out == 0) encoder.shrink = kUsualShrink;
  return encoder;
}

std::size_t decode_vectors(std::span<const std::uint16_t> numbers, std::span<float> into) {
  std::size_t bad = numbers.size();
  for (std::size_t i = numbers.size(); i-- > 0;) {
    into[i] = std::bit_cast<float>(static_cast<std::uint32_t>(numbers[i]) << 16);
    if ((numbers[i] & 0x7f80) == 0x7f80) bad = i;
  }
  return bad;
}

std::size_t decode_correlations(std::span<const std::uint16_t> halves, std::span<float> into) {
  constexpr std::uint32_t kOne = 0x3c00, kMagnitude = 0x7fff, kSign = 0x8000;
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const std::uint32_t magnitude = halves[i] & kMagnitude;
    most = std::max(most, magnitude);
    // The exponent of a half in that of a float is too small by 112, for denormal numbers as well.
    const float size = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    into[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | (halves[i] & kSign) << 16);
  }
  if (most <= kOne) return halves.size();
  const auto bad = std::ranges::find_if(halves, [](std::uint16_t half) { return (half & kMagnitude) > kOne; });
  const auto index = static_cast<std::size_t>(bad - halves.begin());
  if ((*bad & kMagnitude) >= 0x7c00) into[index] = (*bad & kMagnitude) == 0x7c00 ? INFINITY : NAN;
  return index;
}

std::uint16_t half_of_correlation(double correlation) {
  const double size = std::fabs(correlation);
  const std::uint16_t sign = std::signbit(correlation) ? 0x8000 : 0;
  if (!(size > 0)) return sign;
  int exponent = 0;
  std::frexp(size, &exponent);                     // size = f 2^exponent, 0.5 <= f < 1
  const int least = std::max(exponent - 11, -24);  // of the last of 11 bits
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, -least)));
  // The eleventh bit, if there is one, and a number that is rounded up to 2^11 units add to the exponent.
  return static_cast<std::uint16_t>(sign | (units + (static_cast<std::uint32_t>(least + 24) << 10)));
}

}  // namespace ggufmill
