#pragma once
// Synthetic weights: deterministic float32 values that can be reproduced on any machine, in any order. Value k of a
// seed is computed from output k + 1 of splitmix64 (Steele, Lea, Flood, 2014) with exact float32 arithmetic. All
// functions are pure and thread-safe.

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ggufmill::synth {

enum class Distribution : std::uint8_t {
  kNormal,    // bell-shaped, within 1/16
  kOutliers,  // bell-shaped within 1/32, about one in 512 is sixteen times larger
  kCubed,     // heavy tail
  kPositive,  // above 1/128
  kSparse,    // three in four are +0
  kSteps,     // runs of 32 equal values
  kTiny,      // near the thresholds below which a block is treated as zero
  kLarge,     // up to 8192
  kNorm,      // around 1, like the weights of a normalization layer
  kZero,      // +0
  kHuge,      // up to 2^20
  kSmall,     // within 2^-14
  kTrits,     // -1, 0 or 1, times 0.625
  kHoles,     // normal, but +0 in one of four runs of 16, and in one of four runs of 512
  kConstant,  // runs of 256 equal values
  kSpikes,    // bell-shaped within 1/32, about one in 64 is 8192 times larger
  kDecades,   // magnitudes from 2^-26 to 2
  kNegative,  // the same, all below 0
  kGaps,      // runs of 256: +0, -0, +0 but for one value, and +0 in every other run of 32
};

// Returns the distribution with this name ("normal", "outliers", ...); throws std::invalid_argument if it is unknown.
Distribution distribution_named(std::string_view name);

// Fills `out` with the values from linear index `start` on.
void fill(Distribution distribution, std::uint64_t seed, std::uint64_t start, std::span<float> out);

// Returns these values as a vector; throws std::invalid_argument for an unknown name.
std::vector<float> values(std::string_view distribution, std::uint64_t seed, std::uint64_t start, std::uint64_t count);

// Returns importance weights, one per column, none of which is negative. Throws std::invalid_argument for an unknown
// kind:
//   yes         strictly positive
//   holes       +0 in every third run of 32 columns
//   one-in-16   +0 except in one column of each run of 16; one-in-256 likewise
//   wide        from 2^-40 to 2^21
//   zero        +0
std::vector<float> importance(std::uint64_t seed, std::uint64_t count, std::string_view kind = "yes");

// Rounds to nearest, ties to even. The value must be finite and below 65520 in magnitude, as all synthetic values are.
inline std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  // Below 2^-14 the result is subnormal: adding 1/2 leaves the 10 rounded bits at the bottom of the sum.
  const auto subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
  const std::uint32_t normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
  return static_cast<std::uint16_t>(sign | (magnitude < 113u << 23 ? subnormal : normal));
}

// Rounds to nearest, ties to even. The value must be finite.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// The same for values and as many results.
void to_f16(std::span<const float> values, std::span<std::uint16_t> out);
void to_bf16(std::span<const float> values, std::span<std::uint16_t> out);

}  // namespace ggufmill::synth
