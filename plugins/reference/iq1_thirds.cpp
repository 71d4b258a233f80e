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

bool take_to_book(const Thirds& thirds, float& scale, std::uint16_t* index) {
  const Lattice<Ternary>& lattice = iq1_lattice();
  bool moved = false;
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
