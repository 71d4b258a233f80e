#pragma once
// What the encoders of IQ1_S and IQ1_M share. With three levels the best levels without a book are found exactly:
// sorted by value, a sub-block is cut in three parts, and all cuts are tried. Then each group is taken to the book.
// Source: ggml-quants.c, quantize_row_iq1_s_impl and quantize_row_iq1_m_impl.

#include <array>
#include <cfloat>
#include <cstdint>

namespace ggufmill::reference {

inline constexpr float kIq1Shift = 0.125f;

// What the levels stand for, with the shift up [0] and down [1].
inline constexpr std::array<float, 3> kShiftedValues[2] = {{-1 + kIq1Shift, kIq1Shift, 1 + kIq1Shift},
                                                           {-1 - kIq1Shift, -kIq1Shift, 1 - kIq1Shift}};

// In the sorted order, the elements before `low` have level 0, those before `high` level 1, the others level 2.
struct Cut {
  int low = -1, high = -1;
  unsigned shifts = 0;  // which of the ways to shift
  float scale = 0;
  float score = -FLT_MAX;

  bool found() const { return low >= 0; }
  // Takes a cut with its least-squares sums, if it is better.
  void consider(int a, int b, unsigned ways, float xq, float qq) {
    if (!(qq > 0 && xq * xq > score * qq)) return;
    scale = xq / qq;
    score = scale * xq;
    low = a;
    high = b;
    shifts = ways;
  }
};

// The elements' places in ascending order of value; equal ones keep theirs, and the sums depend on it.
void ascending(const float* x, int count, std::uint8_t* order);

// The levels of a cut; 2 - level where its scale is below zero, for the encoder to turn the scale and the shifts round.
void levels_of(const Cut& cut, const std::uint8_t* order, int count, std::uint8_t* levels);

// A sub-block of `groups` groups on its way to the book.
struct Thirds {
  const float* x;
  const float* weight;
  const std::uint8_t* levels;
  const std::array<float, 3>* values[4];  // of each group's levels
  int groups;
};

// The book's index for each group, and the least-squares scale if any group had to move. False: see kNoBookPoint.
bool take_to_book(const Thirds& thirds, float& scale, std::uint16_t* index);

// The scales of sub-blocks in units of the super-block's: 2 * level + 1.
unsigned scale_level(float inverse, float scale);

float largest_magnitude(const float* x, int count);

}  // namespace ggufmill::reference
