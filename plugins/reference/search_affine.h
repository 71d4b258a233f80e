#pragma once
// The search for types with scales and minimums: x ~ d * scale * level - dmin * minimum, with one scale and minimum for
// each group of a super-block.
//
// First the best line of each group is found, with a scale and a minimum of any value: from several first scales,
// levels and line are improved by turns. Then codes for these scales and minimums are tried near what d and dmin, from
// several starts, make of them; for the codes and levels found, d and dmin are those of least squared error, and so on
// until nothing improves. Sums are in element order, without fused operations. All arithmetic is in F32, but for the
// sums over the groups of a super-block.

#include <cstdint>

namespace ggufmill::reference {

struct AffineFormat {
  int group;            // elements: 16 or 32
  int limit;            // greatest level
  int most_code;        // greatest code of a scale or minimum
  float first, across;  // the first scales tried are the range of the values divided by first, ..., first + across
  float apart;          // distance of the starts of d and dmin, in codes
};

struct AffineEffort {
  int lines;        // first scales tried for a group
  int refinements;  // of each line after its first levels
  int lines_alone;  // the same if the group is a block
  int refinements_alone;
  int d_starts, m_starts;
  int kept;            // lines that codes are derived from
  bool near_minimums;  // the codes beside the best minimum as well
  bool reflects;       // -x as well
};
inline constexpr AffineEffort kAffineEfforts[] = {
    {12, 1, 4, 0, 1, 1, 1, false, false}, {16, 2, 16, 2, 3, 2, 1, false, false}, {20, 2, 20, 2, 3, 2, 2, true, true}};
inline constexpr int kAffineRounds = 4;  // of codes, then d and dmin
inline constexpr int kMinimumTurns = 4;  // minimums tried for a scale

struct AffineCodes {
  static constexpr int kMaxGroups = 16;
  float d = 0, dmin = 0;  // exact as halves; negative in a reflected solution
  std::uint8_t scales[kMaxGroups] = {}, minimums[kMaxGroups] = {};
  std::uint8_t levels[256] = {};
};

// Returns false if nothing is better than zeros although the values are not all zero, which happens if sums overflow or
// underflow. `effort` is 1 to 3.
bool search_affine(const AffineFormat& format, const float* x, const float* weights, std::uint32_t effort,
                   AffineCodes& codes);

// The same for a block of 32 with its own d and m, of either sign: x ~ d * level + m.
inline constexpr int kInLine = 32;
inline constexpr float kLineAcross = 1.95f;  // AffineFormat::across; `first` is the limit less 1
inline constexpr int kLinesKept = 2;
struct LineCodes {
  float d = 0, m = 0;
  std::uint8_t levels[kInLine] = {};
};
bool search_line(int limit, const float* x, const float* weights, std::uint32_t effort, LineCodes& codes);

}  // namespace ggufmill::reference
