#pragma once
// The 32 pairs of levels of IQ2_KL. Source: ik_llama.cpp, ggml/src/iqk/iqk_quantize.cpp (MIT).

#include <array>
#include <cstddef>
#include <cstdint>

#include "plugins/ik/nonlinear.h"

namespace ggufmill::ik {

// The pair of two levels of kValues3, by 8 * first + second; -1 - i if it is not one of the 32: see kNear[i].
inline constexpr std::array<int, 64> kPairOf{
    -1, -2,  0,   -3,  -4,  1,   -5, -6,  2,   -7,  -8,  3,   -9,  4,   -10, 5,   -11, 6,   7,   -12, 8,  9,
    10, -13, 11,  -14, -15, -16, 12, 13,  -17, 14,  -18, -19, 15,  16,  17,  18,  19,  -20, -21, 20,  21, 22,
    23, 24,  -22, -23, 25,  -24, 26, -25, 27,  -26, 28,  29,  -27, -28, 30,  -29, -30, 31,  -31, -32};
// Pairs that are near to one that does not exist, in the order in which they are tried.
inline constexpr std::uint8_t kNear[32][8] = {
    {2, 0, 6, 11, 7, 3, 8, 15},       {0, 2, 3, 6, 7, 1, 8, 4},         {0, 1, 3, 4, 8, 7, 9, 6},
    {1, 0, 3, 4, 8, 9, 7, 10},        {1, 4, 5, 10, 9, 3, 8, 0},        {5, 1, 4, 10, 9, 14, 8, 3},
    {6, 2, 7, 0, 3, 11, 8, 15},       {3, 7, 0, 6, 8, 4, 12, 9},        {3, 4, 8, 9, 1, 7, 12, 10},
    {4, 10, 5, 9, 1, 8, 13, 14},      {11, 2, 6, 7, 20, 15, 25, 21},    {8, 7, 3, 12, 9, 16, 17, 13},
    {14, 5, 10, 19, 9, 13, 4, 18},    {6, 15, 7, 11, 20, 21, 16, 2},    {15, 7, 16, 6, 21, 12, 17, 22},
    {12, 16, 17, 8, 15, 7, 13, 22},   {19, 10, 13, 18, 14, 9, 12, 24},  {11, 20, 25, 6, 15, 2, 21, 7},
    {20, 15, 21, 6, 11, 7, 16, 26},   {14, 19, 29, 10, 28, 18, 13, 24}, {25, 11, 20, 21, 15, 6, 26, 30},
    {19, 24, 28, 18, 29, 23, 13, 17}, {29, 19, 14, 28, 24, 18, 10, 13}, {20, 26, 21, 25, 30, 15, 22, 16},
    {27, 26, 22, 23, 21, 30, 16, 24}, {27, 24, 28, 31, 23, 18, 22, 17}, {25, 30, 20, 26, 21, 11, 15, 22},
    {30, 26, 25, 20, 21, 27, 22, 15}, {30, 27, 31, 26, 22, 23, 21, 24}, {31, 27, 30, 26, 28, 23, 22, 24},
    {31, 28, 29, 27, 24, 23, 19, 18}, {29, 28, 31, 24, 19, 27, 14, 18}};

struct Pair {
  float first = 0, second = 0;
};
inline constexpr std::array<Pair, 32> kGrid = [] {
  std::array<Pair, 32> grid;
  for (std::size_t i = 0; i < kPairOf.size(); ++i)
    if (kPairOf[i] >= 0) grid[static_cast<std::size_t>(kPairOf[i])] = {kValues3.plain[i / 8], kValues3.plain[i % 8]};
  return grid;
}();

}  // namespace ggufmill::ik
