#pragma once
// Code shared by the encoders of IQ1_S and IQ1_M. With only three levels, the best levels without a code book can be
// found exactly: sort the sub-block by value, cut it into three parts, and try all cuts. Then each group is mapped to a
// point of the code book. Source: ggml-quants.c, quantize_row_iq1_s_impl and quantize_row_iq1_m_impl.

#include <array>
#include <cfloat>
#include <cstdint>

namespace ggufmill::reference {

inline constexpr float kIq1Shift = 0.125f;

// Values of the levels, with the shift up [0] and down [1].
inline constexpr std::array<float, 3> kShiftedValues[2] = {{-1 + kIq1Shift, kIq1Shift, 1 + kIq1Shift},
                                                           {-1 - kIq1Shift, -kIq1Shift, 1 - kIq1Shift}};

// In sorted order, the elements before `low` have level 0, those before `high` level 1, and the others level 2.
struct Cut {
  int low = -1, high = -1;
  unsigned shifts = 0;  // index of the shift combination
  float scale = 0;
  float score = -FLT_MAX;

  bool found() const { return low >= 0; }
  // Keeps a cut, given its least-squares sums, if it is better than the best so far.
  void consider(int a, int b, unsigned ways, float xq, float qq) {
    if (!(qq > 0 && xq * xq > score * qq)) return;
    scale = xq / qq;
    score = scale * xq;
    low = a;
    high = b;
    shifts = ways;
  }
};

// Computes the positions of the elements in ascending order of value. The sort is stable, and the sums depend on it.
void ascending(const float* x, int count, std::uint8_t* order);

// Computes the levels of a cut. If its scale is negative, the levels are mirrored to 2 - level, and the encoder must
// negate the scale and invert the shifts.
void levels_of(const Cut& cut, const std::uint8_t* order, int count, std::uint8_t* levels);

// Tries both shifts of all cuts of up to 32 values, using prefix sums over the elements in sorted order. The shift is
// the same for all values.
Cut best_cut_of_one_shift(const float* x, const float* weight, const std::uint8_t* order, int count);

// A sub-block of `groups` groups to be mapped to the code book.
struct Thirds {
  const float* x;
  const float* weight;
  const std::uint8_t* levels;
  const std::array<float, 3>* values[4];  // values of the levels, per group
  int groups;
};

// Finds the code book index of each group; sets `moved` if any group was not in the book. Returns false on
// kNoBookPoint.
bool find_in_book(const Thirds& thirds, float scale, std::uint16_t* index, bool& moved);

// Does the same, and recomputes the least-squares scale if any group was not in the book. Returns false on
// kNoBookPoint.
bool take_to_book(const Thirds& thirds, float& scale, std::uint16_t* index);

// Returns the 3-bit level of a sub-block's scale. The scale is 2 * level + 1, in units of the super-block's scale.
unsigned scale_level(float inverse, float scale);

float largest_magnitude(const float* x, int count);

}  // namespace ggufmill::reference
