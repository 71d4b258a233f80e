#pragma once
// The code books of the IQ1, IQ2 and IQ3 types. A code book lists the lattice points that a group of weights can take.
//
// A point is a group of levels. The magnitude of a weight depends only on its level, so types with different magnitudes
// share this code. In every book the indices follow the order of the points' codes. A book is therefore a set, and the
// source stores it as one bit per code (codebook_members.h), which takes 4 KiB instead of 33 KiB.

#include <array>
#include <cstdint>

namespace ggufmill::reference {

// All points with Dims coordinates of Levels levels each. The code of a point is the number whose base-Levels digits
// are the coordinates, with the first coordinate as the least significant digit.
template <int Dims, int Levels>
struct Space {
  static constexpr int kDims = Dims;
  static constexpr int kLevels = Levels;
  static constexpr int kCodes = [] {
    int codes = 1;
    for (int i = 0; i < Dims; ++i) codes *= Levels;
    return codes;
  }();
  using Point = std::array<std::uint8_t, Dims>;

  static constexpr Point point_of(int code) {
    Point point{};
    for (std::uint8_t& level : point) {
      level = static_cast<std::uint8_t>(code % Levels);
      code /= Levels;
    }
    return point;
  }

  // `levels`: kDims levels, each below kLevels.
  static constexpr int code_of(const std::uint8_t* levels) {
    int code = 0;
    for (int i = Dims; i-- > 0;) code = code * Levels + levels[i];
    return code;
  }
};

using Ternary = Space<8, 3>;  // IQ1 and IQ2: groups of 8 weights
using Octal = Space<4, 8>;    // IQ3: groups of 4 weights

template <class Space, int Size>
using CodeBook = std::array<typename Space::Point, Size>;

// Constant data, expanded at compile time; there is no initialization at run time.
extern const CodeBook<Ternary, 2048> kIq1Book;  // IQ1_S and IQ1_M
extern const CodeBook<Ternary, 256> kIq2XxsBook;
extern const CodeBook<Ternary, 512> kIq2XsBook;
extern const CodeBook<Ternary, 1024> kIq2SBook;
extern const CodeBook<Octal, 256> kIq3XxsBook;
extern const CodeBook<Octal, 512> kIq3SBook;

// Magnitude of each level, in units of the decoded scale.
inline constexpr std::uint8_t kIq2Magnitudes[3] = {8, 25, 43};
inline constexpr std::uint8_t kIq3XxsMagnitudes[8] = {4, 12, 20, 28, 36, 44, 52, 62};
inline constexpr std::uint8_t kIq3SMagnitudes[8] = {1, 3, 5, 7, 9, 11, 13, 15};
inline constexpr std::int8_t kIq1Values[3] = {-1, 0, 1};
inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace ggufmill::reference
