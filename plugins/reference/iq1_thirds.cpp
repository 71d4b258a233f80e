#include "plugins/reference/iq1_thirds.h"

#include <cmath>

#include "plugins/reference/floats.h"
#include "plugins/reference/iq_match.h"

namespace ggufmill::reference {

void ascending(const float* x, int count, std::uint8_t* order) {
  for (int i = 0; i < count; ++i) {
    int at = i;
    for (; at > 0 && x[order[at - 1]] > x[i]; --at) order[at] = order[at - 1];
    order[at] = static_cast<std::uint8_t>(i);
  }
}

void levels_of(const Cut& cut, const std::uint8_t* order, int count, std::uint8_t* levels) {
  for (int i = 0; i < count; ++i) {
    const int level = i < cut.low ? 0 : i < cut.high ? 1 : 2;
    levels[order[i]] = static_cast<std::uint8_t>(cut.scale < 0 ? 2 - level : level);
  }
}

Cut best_cut_of_one_shift(const float* x, const float* weight, const std::uint8_t* order, int count) {
  float wx[33] = {}, w[33] = {};
  for (int i = 0; i < count; ++i) {
    wx[i + 1] = wx[i] + weight[order[i]] * x[order[i]];
    w[i + 1] = w[i] + weight[order[i]];
  }
  Cut best;
  for (int low = 0; low <= count; ++low) {
    for (int high = low; high <= count; ++high) {
      const float wx1 = wx[high] - wx[low], wx2 = wx[count] - wx[high];
      const float w1 = w[high] - w[low], w2 = w[count] - w[high];
      for (unsigned shift = 0; shift < 2; ++shift) {
        const auto& v = kShiftedValues[shift];
        best.consider(low, high, shift, wx[low] * v[0] + wx1 * v[1] + wx2 * v[2],
                      w[low] * v[0] * v[0] + w1 * v[1] * v[1] + w2 * v[2] * v[2]);
      }
    }
  }
  return best;
}

bool find_in_book(const Thirds& thirds, float scale, std::uint16_t* index, bool& moved) {
  const Lattice<Ternary>& lattice = iq1_lattice();
  for (int group = 0, at = 0; group < thirds.groups; ++group, at += 8) {
    const int code = Ternary::code_of(thirds.levels + at);
    int found = lattice.index[code];
    if (found < 0) {
      moved = true;
      const ScaledLevels<Ternary> scaled = scaled_levels<Ternary>(scale, *thirds.values[group]);
      found = nearest_neighbour(lattice, code, scaled, thirds.x + at, thirds.weight + at);
      if (found < 0) return false;
    }
    index[group] = static_cast<std::uint16_t>(found);
  }
  return true;
}

bool take_to_book(const Thirds& thirds, float& scale, std::uint16_t* index) {
  bool moved = false;
  if (!find_in_book(thirds, scale, index, moved)) return false;
  if (!moved) return scale >= 0;
  float xq = 0, qq = 0;
  for (int i = 0; i < 8 * thirds.groups; ++i) {
    const float q = (*thirds.values[i / 8])[kIq1Book[index[i / 8]][i % 8]];
    xq += thirds.weight[i] * q * thirds.x[i];
    qq += thirds.weight[i] * q * q;
  }
  if (xq > 0 && qq > 0) scale = xq / qq;
  return scale >= 0;
}

unsigned scale_level(float inverse, float scale) {
  return static_cast<unsigned>(clamp_level(nearest_int(0.5f * (inverse * scale - 1)), 0, 7));
}

float largest_magnitude(const float* x, int count) {
  float most = std::fabs(x[0]);
  for (int i = 1; i < count; ++i) most = most > std::fabs(x[i]) ? most : std::fabs(x[i]);
  return most;
}

}  // namespace ggufmill::reference
