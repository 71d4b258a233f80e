#include "tests/support/synth.h"

#include <cmath>
#include <stdexcept>
#include <string>

namespace ggufmill::synth {
namespace {

// Returns output `index` + 1 of the splitmix64 generator seeded with `seed`.
inline std::uint64_t bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Returns the centered sum of the four 16-bit fields: an exact float32 in (-1, 1).
inline float bell(std::uint64_t z) {
  const auto sum = static_cast<std::int32_t>((z & 0xFFFF) + (z >> 16 & 0xFFFF) + (z >> 32 & 0xFFFF) + (z >> 48));
  return static_cast<float>(sum - 131070) * 0x1p-17f;
}

// Returns the top 24 bits as an exact float32 in [-1, 1).
inline float uniform(std::uint64_t z) {
  return static_cast<float>(static_cast<std::int32_t>(z >> 40) - 8388608) * 0x1p-23f;
}

inline float outlier(std::uint64_t z) {
  const float value = bell(z) * 0x1p-5f;
  return (z >> 3 & 511) == 0 ? value * 16.0f : value;
}

// Returns an integer in [0, count), from the low 16 bits.
inline int exponent(std::uint64_t z, std::uint64_t count) { return static_cast<int>((z & 0xFFFF) % count); }

// Returns a magnitude in [2^-26, 2].
inline float magnitude(std::uint64_t z) { return std::ldexp(1.0f + std::fabs(uniform(z)), -exponent(z, 27)); }

inline float gap(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t first = index & ~255ull;
  switch (index >> 8 & 3) {
    case 1:
      return -0.0f;
    case 2:
      return (index & 255) == (bits(seed, first) & 255) ? bell(bits(seed, index)) : 0.0f;
    case 3:
      return (index >> 5 & 1) != 0 ? bell(bits(seed, index)) : 0.0f;
    default:
      return 0.0f;
  }
}

inline float cubed(std::uint64_t z) {
  const float u = uniform(z);
  return u * u * u;
}

template <class Value>  // float(std::uint64_t index)
void fill_with(std::uint64_t start, std::span<float> out, Value value) {
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = value(start + k);
}

template <class FromBits>  // float(std::uint64_t bits)
void fill_from_bits(std::uint64_t seed, std::uint64_t start, std::span<float> out, FromBits from_bits) {
  fill_with(start, out, [=](std::uint64_t index) { return from_bits(bits(seed, index)); });
}

struct Name {
  std::string_view text;
  Distribution distribution;
};

constexpr Name kNames[] = {
    {"normal", Distribution::kNormal},     {"outliers", Distribution::kOutliers}, {"cubed", Distribution::kCubed},
    {"positive", Distribution::kPositive}, {"sparse", Distribution::kSparse},     {"steps", Distribution::kSteps},
    {"tiny", Distribution::kTiny},         {"large", Distribution::kLarge},       {"norm", Distribution::kNorm},
    {"zero", Distribution::kZero},         {"huge", Distribution::kHuge},         {"small", Distribution::kSmall},
    {"trits", Distribution::kTrits},       {"holes", Distribution::kHoles},       {"constant", Distribution::kConstant},
    {"spikes", Distribution::kSpikes},     {"decades", Distribution::kDecades},   {"negative", Distribution::kNegative},
    {"gaps", Distribution::kGaps},
};

}  // namespace

Distribution distribution_named(std::string_view name) {
  for (const Name& known : kNames) {
    if (known.text == name) return known.distribution;
  }
  throw std::invalid_argument("unknown distribution '" + std::string(name) + "'");
}

void fill(Distribution distribution, std::uint64_t seed, std::uint64_t start, std::span<float> out) {
  const auto from_bits = [&](auto value) { fill_from_bits(seed, start, out, value); };
  switch (distribution) {
    case Distribution::kNormal:
      return from_bits([](std::uint64_t z) { return bell(z) * 0x1p-4f; });
    case Distribution::kOutliers:
      return from_bits(outlier);
    case Distribution::kCubed:
      return from_bits(cubed);
    case Distribution::kPositive:
      return from_bits([](std::uint64_t z) { return std::fabs(bell(z)) + 0x1p-7f; });
    case Distribution::kSparse:
      return from_bits([](std::uint64_t z) { return (z >> 5 & 3) == 0 ? bell(z) : 0.0f; });
    case Distribution::kSteps:
      return fill_with(start, out, [=](std::uint64_t i) { return bell(bits(seed, i & ~31ull)); });
    case Distribution::kTiny:
      return from_bits([](std::uint64_t z) { return bell(z) * ((z >> 7 & 1) == 0 ? 0x1p-50f : 0x1p-40f); });
    case Distribution::kLarge:
      return from_bits([](std::uint64_t z) { return bell(z) * 8192.0f; });
    case Distribution::kNorm:
      return from_bits([](std::uint64_t z) { return 1.0f + bell(z) * 0.125f; });
    case Distribution::kZero:
      return from_bits([](std::uint64_t) { return 0.0f; });
    case Distribution::kHuge:
      return from_bits([](std::uint64_t z) { return bell(z) * 0x1p20f; });
    case Distribution::kSmall:
      return from_bits([](std::uint64_t z) { return bell(z) * 0x1p-14f; });
    case Distribution::kTrits:
      return from_bits(
          [](std::uint64_t z) { return static_cast<float>(static_cast<int>((z >> 33) % 3) - 1) * 0.625f; });
    case Distribution::kHoles:
      return fill_with(start, out, [=](std::uint64_t i) {
        const bool is_hole = (bits(seed ^ 0x5bd1e995, i >> 4) >> 11 & 3) == 0 || (i >> 9 & 3) == 2;
        return is_hole ? 0.0f : bell(bits(seed, i)) * 0x1p-4f;
      });
    case Distribution::kConstant:
      return fill_with(start, out, [=](std::uint64_t i) { return bell(bits(seed, i & ~255ull)); });
    case Distribution::kSpikes:
      return from_bits([](std::uint64_t z) {
        const float value = bell(z) * 0x1p-5f;
        return (z >> 3 & 63) == 0 ? value * 8192.0f : value;
      });
    case Distribution::kDecades:
      return from_bits([](std::uint64_t z) { return (z >> 20 & 1) == 0 ? magnitude(z) : -magnitude(z); });
    case Distribution::kNegative:
      return from_bits([](std::uint64_t z) { return -magnitude(z); });
    case Distribution::kGaps:
      return fill_with(start, out, [=](std::uint64_t i) { return gap(seed, i); });
  }
}

std::vector<float> values(std::string_view distribution, std::uint64_t seed, std::uint64_t start, std::uint64_t count) {
  std::vector<float> out(count);
  fill(distribution_named(distribution), seed, start, out);
  return out;
}

std::vector<float> importance(std::uint64_t seed, std::uint64_t count, std::string_view kind) {
  std::vector<float> out(count);
  const auto set = [&](auto value) { fill_with(0, out, value); };
  const auto positive = [=](std::uint64_t column) {
    const std::uint64_t z = bits(seed, column);
    return bell(z) * bell(z) * 4.0f + 0x1p-10f;
  };
  const auto set_one_in = [&](std::uint64_t run) {
    set([=](std::uint64_t column) {
      const std::uint64_t first = column / run * run;
      return column - first == bits(seed, first) % run ? positive(column) : 0.0f;
    });
  };
  if (kind == "yes")
    set(positive);
  else if (kind == "holes")
    set([=](std::uint64_t column) { return (column >> 5) % 3 == 1 ? 0.0f : positive(column); });
  else if (kind == "one-in-16")
    set_one_in(16);
  else if (kind == "one-in-256")
    set_one_in(256);
  else if (kind == "wide")
    set([=](std::uint64_t column) {
      const std::uint64_t z = bits(seed, column);
      return std::ldexp(1.0f + std::fabs(uniform(z)), 20 - exponent(z, 61));
    });
  else if (kind != "zero")
    throw std::invalid_argument("unknown importance '" + std::string(kind) + "'");
  return out;
}

void to_f16(std::span<const float> values, std::span<std::uint16_t> out) {
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = to_f16(values[i]);
}

void to_bf16(std::span<const float> values, std::span<std::uint16_t> out) {
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = to_bf16(values[i]);
}

}  // namespace ggufmill::synth
