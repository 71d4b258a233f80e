#pragma once
// Exact blocks of types with one scale for 32 values: x = d * value.

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <span>

#include "plugins/abi/ggufmill_lattice.h"
#include "plugins/reference/codebooks.h"
#include "plugins/reference/iq4_types.h"
#include "plugins/reference/search_parts.h"
#include "plugins/reference/simple_types.h"

namespace ggufmill::reference {

// The values of the levels are the whole numbers from kMin to kMax, stored as level = value - kZero.
template <class CodecType, int kMinValue, int kMaxValue, int kZero, bool kIsCoarse>
struct WholeNumbers {
  using Codec = CodecType;
  static constexpr bool kHasNear = kIsCoarse;
  static constexpr int kLevels = kMaxValue - kMinValue + 1;
  // Level i of a list that has values of greater magnitude first: -8, 7, -7, ..., 1, -1, 0.
  static int value(int i) {
    const int magnitude = -kMinValue - (i + 1) / 2;
    return i % 2 == 0 ? -magnitude : magnitude;
  }
  static int nearest(float x, float d) { return nearest_code(x / d, kMinValue, kMaxValue); }
  static std::uint8_t stored(int value) { return static_cast<std::uint8_t>(value - kZero); }
};

// The table of IQ4_NL, stored as indices.
struct TableValues {
  using Codec = Iq4Nl;
  static constexpr bool kHasNear = true;
  static constexpr int kLevels = 16;
  static int value(int i) { return kIq4Values[i]; }
  static int nearest(float x, float d) {
    int best = kIq4Values[0];
    for (const auto value : kIq4Values)
      if (std::fabs(d * static_cast<float>(value) - x) < std::fabs(d * static_cast<float>(best) - x)) best = value;
    return best;
  }
  static std::uint8_t stored(int value) {
    std::uint8_t level = 0;
    while (kIq4Values[level] != value) ++level;
    return level;
  }
};

template <class Values>
class ExactScaled {
 public:
  using Codec = typename Values::Codec;

  static std::int32_t find(const float* x, typename Codec::Block& block) {
    ExactScaled found(x);
    const float extreme = extreme_of(std::span(x, kCount));
    if (extreme == 0) {
      found.d_ = 0;
      found.put(block);
      return GGUFMILL_LATTICE_EXACT;
    }
    for (int i = 0; i < Values::kLevels; ++i)
      if (found.is_exact(extreme, Values::value(i))) {
        found.put(block);
        return GGUFMILL_LATTICE_EXACT;
      }
    if constexpr (Values::kHasNear) {
      for (int i = 0; i < Values::kLevels; ++i) found.offer_near(extreme, Values::value(i));
      if (found.error_ < DBL_MAX) {
        found.put(block);
        return GGUFMILL_LATTICE_NEAR;
      }
    }
    return GGUFMILL_LATTICE_NONE;
  }

 private:
  static constexpr int kCount = 32;
  static constexpr float kNear = 0x1p-6f;

  explicit ExactScaled(const float* x) : x_(x) {}

  bool is_exact(float extreme, int value) {
    if (value == 0) return false;
    d_ = as_half(extreme / static_cast<float>(value));
    if (d_ == 0 || !std::isfinite(d_) || d_ * static_cast<float>(value) != extreme) return false;
    for (int i = 0; i < kCount; ++i) {
      values_[i] = Values::nearest(x_[i], d_);
      if (d_ * static_cast<float>(values_[i]) != x_[i]) return false;
    }
    return true;
  }

  // Keeps, out of several scales, the first with the least squared error.
  void offer_near(float extreme, int value) {
    if (value == 0) return;
    const float scale = extreme / static_cast<float>(value);
    int values[kCount];
    float vx = 0, vv = 0;
    for (int i = 0; i < kCount; ++i) {
      values[i] = Values::nearest(x_[i], scale);
      const auto v = static_cast<float>(values[i]);
      if (!(std::fabs(scale * v - x_[i]) <= kNear * std::fabs(x_[i]))) return;
      vx += v * x_[i];
      vv += v * v;
    }
    const float d = as_half(vx / vv);
    if (d == 0 || !std::isfinite(d)) return;
    double error = 0;
    for (int i = 0; i < kCount; ++i) {
      const double off = double{x_[i]} - double{d} * values[i];
      error += off * off;
    }
    if (!(error < error_)) return;
    error_ = error;
    d_ = d;
    for (int i = 0; i < kCount; ++i) values_[i] = values[i];
  }

  void put(typename Codec::Block& block) const {
    std::uint8_t levels[kCount];
    for (int i = 0; i < kCount; ++i) levels[i] = Values::stored(d_ == 0 ? Values::nearest(0, 1) : values_[i]);
    Codec::pack(d_, levels, block);
  }

  const float* x_;
  float d_ = 0;
  int values_[kCount] = {};
  double error_ = DBL_MAX;
};

}  // namespace ggufmill::reference
