#pragma once
// The search for types with scales only: x ~ d * scale * value, with one scale for each group of a super-block, where
// the values of the levels are the whole numbers of a range or those of the table of IQ4_NL.
//
// First the best scale of any size and sign is found for each group: from several first scales, levels and scale are
// improved by turns. Then codes for these scales are tried near what d, from several starts, makes of them; for the
// codes and levels found, d is that of least squared error, and so on until nothing improves. Sums are in element
// order, without fused operations. All arithmetic is in F32, but for the sums over the groups of a super-block.

#include <cstdint>

namespace ggufmill::reference {

struct ScaleFormat {
  int group;                  // elements: 16 or 32
  int least, most;            // range of the values; unused with the table
  bool is_table;              // the values are kIq4Values
  float extreme;              // magnitude of the value that the greatest weight is first given
  int least_code, most_code;  // range of the scales
  float apart;                // distance of the starts of d, in codes
};

struct ScaleEffort {
  int scales;           // first scales tried for a group, of each sign
  int scales_alone;     // the same if the group is a block
  int starts;           // of d, of each sign; 0: one, of the sign that gives the greatest scale the least code
  int kept;             // scales that codes are derived from
  int improvements;     // of a first scale
  int rounds;           // of codes, then d
  float first, across;  // range of the value that the greatest weight is first given, in extremes
};
inline constexpr ScaleEffort kScaleEfforts[] = {
    {5, 5, 0, 1, 1, 2, 0.9f, 0.2f}, {10, 20, 2, 1, 2, 4, 0.66f, 0.54f}, {16, 40, 4, 2, 2, 4, 0.66f, 0.54f}};
inline constexpr int kScalesKeptAlone = 2;  // if the group is a block

struct ScaleCodes {
  static constexpr int kMaxGroups = 16;
  float d = 0;  // exact as a half, of either sign
  std::int8_t scales[kMaxGroups] = {};
  std::uint8_t levels[256] = {};  // value - least, or the index in the table
};

// Returns false if nothing is better than zeros although the values are not all zero, which happens if sums overflow or
// underflow. `effort` is 1 to 3.
bool search_scales(const ScaleFormat& format, const float* x, const float* weights, std::uint32_t effort,
                   ScaleCodes& codes);

// The same for a block of 32 with its own d: x ~ d * value. `format.group` is 32; the codes of scales are unused.
bool search_one_scale(const ScaleFormat& format, const float* x, const float* weights, std::uint32_t effort,
                      ScaleCodes& codes);

}  // namespace ggufmill::reference
