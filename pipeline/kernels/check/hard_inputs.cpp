#include "pipeline/kernels/check/hard_inputs.h"

#include <bit>
#include <cmath>

namespace ggufmill::conformance {
namespace {

float power_of_two(Random& random, int low, int high) {
  return std::ldexp(1.0f, low + static_cast<int>(random.below(static_cast<unsigned>(high - low) + 1u)));
}

float any_finite(Random& random) {
  for (;;) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
    if (std::isfinite(value)) return value;
  }
}

// One magnitude, sign or value for a run of elements; the next run draws a new one.
struct Run {
  float magnitude = 1;
  float value = 0;
};

Run draw_run(InputKind kind, Random& random) {
  switch (kind) {
    case InputKind::kMixed:
      return {random.below(8) == 0 ? 0.0f : power_of_two(random, -24, 12), 0};
    case InputKind::kTies:
      return {power_of_two(random, -12, 4), 0};
    case InputKind::kOneSided:
      return {random.below(2) == 0 ? 0.5f : -0.5f, 0};
    case InputKind::kConstant:
      return {1, random.bell()};
    case InputKind::kAlmostZero:
      return {power_of_two(random, -54, -20), 0};
    case InputKind::kOverflowing:
      return {power_of_two(random, 61, 68) * (random.below(2) == 0 ? 1.0f : -1.0f), 0};
    case InputKind::kGreatTies:
      return {power_of_two(random, 98, 101), 0};
    case InputKind::kLarge:
      return {power_of_two(random, 28, 46), 0};
    default:
      return {};
  }
}

float draw(InputKind kind, Random& random, const Run& run) {
  switch (kind) {
    case InputKind::kTies:
      return run.magnitude * 0.5f * static_cast<float>(static_cast<int>(random.below(65)) - 32);
    case InputKind::kOneSided:
      return run.magnitude * std::fabs(random.bell());
    case InputKind::kConstant:
      return run.value;
    case InputKind::kSubnormal:
      return std::bit_cast<float>(static_cast<std::uint32_t>(random.next()) & 0x80ffffffu);
    case InputKind::kHuge:
      return random.bell() * 0x1p127f;
    case InputKind::kAnyFinite:
      return any_finite(random);
    case InputKind::kOverflowing:
      return run.magnitude * static_cast<float>(random.below(16)) / 16.0f;
    case InputKind::kSparse:
      return random.below(8) == 0 ? random.bell() : random.below(2) == 0 ? 0.0f : -0.0f;
    case InputKind::kTernary:
      return static_cast<float>(static_cast<int>(random.below(3)) - 1) * (1 + 0x1p-6f * random.bell());
    case InputKind::kGreatTies:
      return run.magnitude * (random.below(4) == 0 ? 0.5f : 1.0f) * (random.below(2) == 0 ? 1.0f : -1.0f);
    default:
      return run.magnitude * random.bell();
  }
}

float draw(ImportanceKind kind, Random& random) {
  switch (kind) {
    case ImportanceKind::kSubnormal:
      return std::bit_cast<float>(static_cast<std::uint32_t>(random.next()) & 0x007fffffu);
    case ImportanceKind::kOneColumn:
      return 0;
    default:
      return random.below(16) == 0 ? 0.0f : std::fabs(random.bell()) + 0x1p-10f;
  }
}

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

float Random::bell() {
  const std::uint64_t z = next();
  const auto sum = static_cast<std::int64_t>((z & 0xffff) + ((z >> 16) & 0xffff) + ((z >> 32) & 0xffff) + (z >> 48));
  return static_cast<float>(sum - 131070) * 0x1p-17f;
}

std::string name_of(InputKind kind) {
  static constexpr const char* kNames[kInputKinds] = {
      "weights", "mixed",      "ties",   "one-sided",           "constant",   "almost zero", "subnormal",
      "huge",    "any finite", "sparse", "overflowing squares", "great ties", "large",       "ternary"};
  return kNames[static_cast<int>(kind)];
}

std::vector<float> hard_input(InputKind kind, Random& random, std::size_t count) {
  const std::size_t run_length = kind == InputKind::kConstant ? 16 : 32;
  std::vector<float> values(count);
  Run run;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % run_length == 0) run = draw_run(kind, random);
    values[i] = draw(kind, random, run);
  }
  return values;
}

std::string name_of(ImportanceKind kind) {
  static constexpr const char* kNames[kImportanceKinds] = {"importance", "importance from 1e-30 to 1e30",
                                                           "subnormal importance", "importance of one column",
                                                           "importance of some eights"};
  return kNames[static_cast<int>(kind)];
}

std::vector<float> hard_importance(ImportanceKind kind, Random& random, std::size_t count) {
  std::vector<float> weights(count);
  for (float& weight : weights) weight = draw(kind, random);
  if (kind == ImportanceKind::kOneColumn) weights[random.below(count)] = power_of_two(random, -100, 100);
  if (kind == ImportanceKind::kEights) {
    bool is_zero = false;
    for (std::size_t i = 0; i < count; ++i) {
      if (i % 8 == 0) is_zero = random.below(2) == 0;
      if (is_zero) weights[i] = 0;
    }
  }
  if (kind == ImportanceKind::kAnyPower) {
    const std::size_t run_length = std::size_t{1} << random.below(6);
    float power = 1;
    for (std::size_t i = 0; i < count; ++i) {
      if (i % run_length == 0) power = power_of_two(random, -100, 100);
      weights[i] *= power;
    }
  }
  return weights;
}

std::vector<std::byte> random_bytes(Random& random, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

}  // namespace ggufmill::conformance
