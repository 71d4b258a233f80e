#pragma once
// Search for the scale of one sub-block of an IQ2 or IQ3 type. Tries several scales around a first guess, maps every
// group to the code book at each of them, and keeps the scale with the least weighted squared error. Source:
// ggml-quants.c, quantize_row_iq2_xxs_impl, _iq2_xs_impl, _iq2_s_impl, _iq3_xxs_impl and _iq3_s_impl; ScaleRule holds
// the differences between them.

#include <algorithm>

#include "plugins/reference/floats.h"
#include "plugins/reference/iq_match.h"
#include "plugins/reference/iq_sub_block.h"

namespace ggufmill::reference {

// Selects the groups that are mapped to the code book again at the scale found by the search.
enum class Revisit {
  kBesideBook,      // groups that the best try moved to a neighbour
  kAllIfAnyBeside,  // all groups, if the best try moved any, or if no try was accepted
  kAll
};

struct ScaleRule {
  int tries;   // number of tries on each side of the guess
  float step;  // distance between tries, in levels of the largest magnitude
  Revisit revisit;
};

// Returns the magnitudes of the levels in half steps: 1, 3, 5, ...
template <class Space>
constexpr std::array<float, Space::kLevels> odd_values() {
  std::array<float, Space::kLevels> values{};
  for (int i = 0; i < Space::kLevels; ++i) values[i] = static_cast<float>(2 * i + 1);
  return values;
}

// Result of place(): bit g of `beside` is set if group g was moved to a neighbour.
struct Placing {
  unsigned beside = 0;
  bool failed = false;
};

// Maps the groups in `which` to the code book: rounds with `inverse`, compares neighbours at `scale`, and writes the
// result to `levels`.
template <class Sub>
Placing place(const Lattice<typename Sub::Space>& lattice, const Sub& sub, float inverse, float scale, unsigned which,
              std::uint8_t* levels) {
  using Space = typename Sub::Space;
  const ScaledLevels<Space> scaled = scaled_levels<Space>(scale, odd_values<Space>());
  Placing placing;
  for (int at = 0, group = 0; group < Sub::kGroups; ++group, at += Space::kDims) {
    if (!(which >> group & 1)) continue;
    for (int i = at; i < at + Space::kDims; ++i) {
      const int level = nearest_int(0.5f * (inverse * sub.x[i] - 1));
      levels[i] = static_cast<std::uint8_t>(clamp_level(level, 0, Space::kLevels - 1));
    }
    const int code = Space::code_of(levels + at);
    if (lattice.index[code] >= 0) continue;
    placing.beside |= 1u << group;
    const int index = nearest_neighbour(lattice, code, scaled, sub.x + at, sub.root + at);
    if (index < 0) return {placing.beside, true};
    for (int i = 0; i < Space::kDims; ++i) levels[at + i] = lattice.book[index][i];
  }
  return placing;
}

// Sums for the least-squares scale of `levels`, which is sum(w x q) / sum(w q q).
struct Fit {
  float xq = 0;
  float qq = 0;
};

template <class Sub>
Fit fit(const Sub& sub, const std::uint8_t* levels) {
  Fit sums;
  for (int i = 0; i < Sub::kCount; ++i) {
    const float q = static_cast<float>(2 * levels[i] + 1);
    sums.xq += sub.weight[i] * sub.x[i] * q;
    sums.qq += sub.weight[i] * q * q;
  }
  return sums;
}

// Searches for sub.scale and sub.levels. `top` is the magnitude that the guess maps to the highest level. On entry,
// sub.scale is the guess. On return, sub.scale is the result, which can be negative, and every group in sub.levels is a
// point of the book. Returns false on kNoBookPoint.
template <class Sub>
bool search_scale(const Lattice<typename Sub::Space>& lattice, ScaleRule rule, float top, Sub& sub) {
  constexpr unsigned kAllGroups = (1u << Sub::kGroups) - 1;
  constexpr int kTopValue = 2 * Sub::Space::kLevels - 1;
  float best = 0;
  unsigned beside = rule.revisit == Revisit::kBesideBook ? 0 : kAllGroups;
  for (int attempt = -rule.tries; attempt <= rule.tries; ++attempt) {
    const float inverse = (kTopValue + attempt * rule.step) / top;
    std::uint8_t levels[Sub::kCount];
    const Placing placing = place(lattice, sub, inverse, 1 / inverse, kAllGroups, levels);
    if (placing.failed) return false;
    const Fit sums = fit(sub, levels);
    if (sums.qq > 0 && sums.xq * sums.xq > best * sums.qq) {
      sub.scale = sums.xq / sums.qq;
      best = sub.scale * sums.xq;
      std::copy(levels, levels + Sub::kCount, sub.levels);
      beside = placing.beside;
    }
  }
  if (rule.revisit == Revisit::kAll || (rule.revisit == Revisit::kAllIfAnyBeside && beside != 0)) beside = kAllGroups;
  if (beside == 0 || !(sub.scale > 0)) return true;
  if (place(lattice, sub, 1 / sub.scale, sub.scale, beside, sub.levels).failed) return false;
  const Fit sums = fit(sub, sub.levels);
  if (sums.qq > 0) sub.scale = sums.xq / sums.qq;
  return true;
}

}  // namespace ggufmill::reference
