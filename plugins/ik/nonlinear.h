#pragma once
// Value tables of the nonlinear types, and the search for the scale of a sub-block.
// Source: ik_llama.cpp, ggml/src/ggml-common.h (tables) and ggml/src/iqk/iqk_quantize.cpp (searches), MIT.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plugins/reference/floats.h"

namespace ggufmill::ik {

using reference::extreme_of;
using reference::nearest_int;

// An ascending table of integers; the second half of a type's table is the first one plus `shift`. All operations are
// exact, so lookups in a table of cells give the same result as comparing all entries.
template <std::size_t kSize>
class Table {
 public:
  static constexpr std::size_t kEntries = kSize;

  constexpr explicit Table(const std::array<int, kSize>& values, int shift = 0) {
    for (std::size_t i = 0; i < kSize; ++i) values_[i] = static_cast<float>(values[i] + shift);
    std::size_t entry = 0;
    for (int at = values[0]; at <= values[kSize - 1]; ++at) {
      while (entry + 1 < kSize && values[entry + 1] <= at) ++entry;
      cells_[static_cast<std::size_t>(at - values[0])] = static_cast<std::uint8_t>(entry);
    }
  }

  constexpr float operator[](std::size_t i) const { return values_[i]; }
  constexpr float front() const { return values_[0]; }

  // Returns the entry nearest to x; of two at the same distance, the greater one.
  std::uint8_t nearest(float x) const {
    if (!(x > values_[0])) return 0;
    if (x >= values_[kSize - 1]) return kSize - 1;
    const std::uint8_t below = cells_[static_cast<std::size_t>(static_cast<int>(std::floor(x) - values_[0]))];
    return x - values_[below] < values_[below + 1u] - x ? below : static_cast<std::uint8_t>(below + 1);
  }

 private:
  std::array<float, kSize> values_{};
  std::array<std::uint8_t, 256> cells_{};  // by the integer part of a value, less the first one
};

// The two tables of a type: a bit of each sub-block says which one it uses.
template <std::size_t kSize>
struct Tables {
  Table<kSize> plain, shifted;
  constexpr Tables(const std::array<int, kSize>& values, int shift) : plain(values), shifted(values, shift) {}
  const Table<kSize>& operator[](bool is_shifted) const { return is_shifted ? shifted : plain; }
};

inline constexpr Tables<4> kValues2({-31, -13, 1, 17}, 5);
inline constexpr Tables<8> kValues3({-63, -40, -23, -10, 1, 13, 28, 47}, 4);
inline constexpr Tables<16> kValues4({-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}, 4);
inline constexpr Tables<32> kValues5({-126, -114, -103, -92, -83, -74, -65, -57, -50, -43, -36,
                                      -30,  -24,  -18,  -12, -6,  -1,  5,   11,  17,  23,  29,
                                      36,   43,   51,   59,  68,  77,  87,  97,  109, 121},
                                     2);
inline constexpr Tables<64> kValues6({-127, -121, -115, -109, -104, -98, -93, -88, -84, -79, -74, -70, -66,
                                      -62,  -58,  -54,  -51,  -47,  -44, -40, -37, -34, -31, -28, -25, -22,
                                      -19,  -16,  -13,  -11,  -8,   -5,  -2,  0,   3,   6,   9,   12,  14,
                                      17,   20,   23,   27,   30,   33,  36,  40,  44,  47,  51,  55,  59,
                                      63,   68,   72,   77,   82,   87,  92,  98,  103, 109, 115, 121},
                                     1);

// Sums for the least-squares scale of levels q: x ~ scale * q with weights w. They run in the order of the values.
struct Sums {
  float qx = 0, q2 = 0;

  void add(float weight, float level, float x) {
    qx += weight * level * x;
    q2 += weight * level * level;
  }
};

// Eight sums, of every eighth value, as a vector register has them.
struct Lanes {
  float lane[8] = {};

  void add(int i, float a, float b) { lane[i % 8] = std::fma(a, b, lane[i % 8]); }
  float total() const {
    float four[4];
    for (int i = 0; i < 4; ++i) four[i] = lane[i + 4] + lane[i];
    return (four[0] + four[2]) + (four[1] + four[3]);
  }
};

// The best scale so far.
struct Best {
  float scale = 0, score = 0;

  // Starts with the scale of the sums, even if their squares are too small to be compared.
  void start(const Sums& sums) {
    scale = sums.qx / sums.q2;
    score = scale * sums.qx;
  }
  // Takes the scale of the sums if it has a smaller error.
  bool take(const Sums& sums) {
    if (!(sums.q2 > 0 && sums.qx * sums.qx > score * sums.q2)) return false;
    scale = sums.qx / sums.q2;
    score = scale * sums.qx;
    return true;
  }
};

inline constexpr float kZero = 1e-16f;  // sub-blocks of smaller values count as zero

struct SubBlockScale {
  float scale = 0;
  bool is_shifted = false;
};

// The scale that the search starts with if the levels of its first scale are all zero, so that no scale fits them: NaN,
// as most types do, or that scale.
enum class Start { kFit, kScale };

// Finds the scale and the table of `count` values: tries inverse scales that map the value of greatest magnitude to
// about the first entry of a table, in steps of `step` entries' units, with both signs.
template <std::size_t kSize>
SubBlockScale search_tables(const Tables<kSize>& tables, int count, const float* x, const float* weights, int tries,
                            float step, Start start = Start::kFit) {
  const float extreme = extreme_of(std::span(x, static_cast<std::size_t>(count)));
  SubBlockScale found;
  if (std::fabs(extreme) < kZero) return found;
  Best best;
  const auto sums_of = [&](float inverse, const Table<kSize>& table, Sums& positive, Sums& negative) {
    for (int i = 0; i < count; ++i) {
      const float scaled = inverse * x[i];
      positive.add(weights[i], table[table.nearest(scaled)], x[i]);
      negative.add(weights[i], table[table.nearest(-scaled)], x[i]);
    }
  };
  const auto try_scale = [&](float inverse, const Table<kSize>& table, bool is_shifted) {
    Sums positive, negative;
    sums_of(inverse, table, positive, negative);
    if (best.take(positive)) found.is_shifted = is_shifted;
    if (best.take(negative)) found.is_shifted = is_shifted;
  };
  const float first = -extreme / tables.plain.front();
  Sums positive, negative;
  sums_of(1 / first, tables.plain, positive, negative);
  if (start == Start::kFit || positive.q2 > 0)
    best.start(positive);
  else
    best.scale = first;
  best.take(negative);
  for (int i = -tries; i <= tries; ++i) {
    const float change = step * static_cast<float>(i);
    try_scale((change + tables.plain.front()) / extreme, tables.plain, false);
    try_scale((change + tables.shifted.front()) / extreme, tables.shifted, true);
  }
  found.scale = best.scale;
  return found;
}

// Returns the least-squares scale for the levels that `scale` gives; `scale` itself if all levels are zero.
template <std::size_t kSize>
float refit(const Table<kSize>& table, int count, const float* x, const float* weights, float scale) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  Sums sums;
  for (int i = 0; i < count; ++i) sums.add(weights[i], table[table.nearest(inverse * x[i])], x[i]);
  return sums.q2 > 0 ? sums.qx / sums.q2 : scale;
}

// Sets the levels of `count` values whose scale is `code` times d, and adds them to the sums.
template <std::size_t kSize>
void choose_levels(const Table<kSize>& table, int count, const float* x, const float* weights, float d, int code,
                   std::uint8_t* levels, Sums& sums) {
  const float scale = d * static_cast<float>(code), inverse = scale != 0 ? 1 / scale : 0;
  for (int i = 0; i < count; ++i) {
    levels[i] = table.nearest(inverse * x[i]);
    sums.add(weights[i], table[levels[i]] * static_cast<float>(code), x[i]);
  }
}

// Returns the least-squares d of scales ~ d * code with codes in [-limit, limit - 1]; 0 if all scales are. `codes`, if
// not null, receives the codes, unless the result is 0 for that reason.
inline float fit_codes(std::size_t count, int limit, const float* scales, const float* weights, int* codes = nullptr) {
  const float extreme = extreme_of(std::span(scales, count));
  if (extreme == 0) return 0;
  const auto code_of = [&](float inverse, std::size_t b) {
    return std::clamp(nearest_int(inverse * scales[b]), -limit, limit - 1);
  };
  const auto sums_of = [&](float inverse) {
    Sums sums;
    for (std::size_t b = 0; b < count; ++b) {
      const auto code = static_cast<float>(code_of(inverse, b));
      sums.qx += weights[b] * scales[b] * code;
      sums.q2 += weights[b] * code * code;
    }
    return sums;
  };
  float chosen = static_cast<float>(-limit) / extreme;
  Best best;
  if (const Sums sums = sums_of(chosen); sums.q2 != 0) best.start(sums);
  for (int i = -9; i <= 9; ++i) {
    if (i == 0) continue;
    const float inverse = -(static_cast<float>(limit) + 0.1f * static_cast<float>(i)) / extreme;
    if (best.take(sums_of(inverse))) chosen = inverse;
  }
  for (std::size_t b = 0; codes && b < count; ++b) codes[b] = code_of(chosen, b);
  return best.scale;
}

// The making of the weights of a super-block: `factor` times the mean square is added to each square. Without
// importance, the weights are the squares, with or without a quarter of that, or the magnitudes.
enum class Without { kSquares, kSquaresAndQuarter, kMagnitudes };
struct Weighting {
  float factor;
  Without without;
};

// Computes the weights of a super-block. Importance of a sub-block that is next to nothing is ignored.
template <int kCount>
void make_weights(const Weighting& weighting, int sub_block, const float* x, const float* importance, float* weights) {
  float sum = 0;
  for (int i = 0; i < kCount; ++i) sum += x[i] * x[i];
  const float added = weighting.factor * sum / static_cast<float>(kCount);
  if (!importance) {
    for (int i = 0; i < kCount; ++i)
      weights[i] = weighting.without == Without::kMagnitudes          ? std::fabs(x[i])
                   : weighting.without == Without::kSquaresAndQuarter ? 0.25f * added + x[i] * x[i]
                                                                      : x[i] * x[i];
    return;
  }
  for (int begin = 0; begin < kCount; begin += sub_block) {
    constexpr float kMin = 1e-9f * 1e-9f;
    const float least = static_cast<float>(sub_block) * kMin;
    float w2 = 0, x2 = 0, wx = 0;
    for (int i = begin; i < begin + sub_block; ++i) {
      w2 += importance[i] * importance[i];
      x2 += x[i] * x[i];
      wx += importance[i] * std::fabs(x[i]);
    }
    const bool counts = w2 > least && x2 > least && wx > least;
    for (int i = begin; i < begin + sub_block; ++i)
      weights[i] = (counts ? importance[i] : 1e-9f) * std::sqrt(added + x[i] * x[i]);
  }
}

}  // namespace ggufmill::ik
