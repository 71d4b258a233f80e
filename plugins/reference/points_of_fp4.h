#pragma once
// MXFP4 and NVFP4 as types with levels in the order of their values (points.h).

#include "plugins/reference/fp4_scales.h"
#include "plugins/reference/fp4_types.h"

namespace ggufmill::reference {

// Twice the values; of the two zeros, the first is positive.
inline constexpr std::int8_t kFp4Table[16] = {-12, -8, -6, -4, -3, -2, -1, 0, 0, 1, 2, 3, 4, 6, 8, 12};

// A level counts from the least value. Codes are a sign and a magnitude.
constexpr std::uint8_t fp4_code_of(std::uint8_t level) {
  return static_cast<std::uint8_t>(level < 7 ? 15 - level : level == 7 ? 0 : level == 8 ? 8 : level - 8);
}
constexpr std::uint8_t fp4_level_of(std::uint8_t code) {
  return static_cast<std::uint8_t>(code == 0 ? 7 : code == 8 ? 8 : code < 8 ? code + 8 : 15 - code);
}

// Levels of `bytes` bytes; the first half of the elements is in the low nibbles.
inline void fp4_levels(const std::uint8_t* qs, int bytes, std::uint8_t* levels) {
  for (int i = 0; i < bytes; ++i) {
    levels[i] = fp4_level_of(qs[i] & 15);
    levels[i + bytes] = fp4_level_of(qs[i] >> 4);
  }
}
inline void put_fp4_levels(const std::uint8_t* levels, int bytes, std::uint8_t* qs) {
  for (int i = 0; i < bytes; ++i)
    qs[i] = static_cast<std::uint8_t>(fp4_code_of(levels[i]) | fp4_code_of(levels[i + bytes]) << 4);
}

struct LevelsOfMxfp4 : MXFP4 {
  static constexpr int kGroup = 32, kMaxLevel = 15;
  static constexpr const std::int8_t* kTable = kFp4Table;
  static void levels(const Block& block, std::uint8_t* levels) { fp4_levels(block.qs, 16, levels); }
  static void put_levels(const std::uint8_t* levels, Block& block) { put_fp4_levels(levels, 16, block.qs); }
  static void lines(const Block& block, float* scales, float* offsets) {
    scales[0] = half_of_e8m0(block.e);
    offsets[0] = 0;
  }
};

struct LevelsOfNvfp4 : NVFP4 {
  static constexpr int kGroup = 16, kMaxLevel = 15, kGroups = 4, kGroupBytes = 8;
  static constexpr const std::int8_t* kTable = kFp4Table;
  static void levels(const Block& block, std::uint8_t* levels) {
    for (int i = 0; i < kGroups; ++i) fp4_levels(block.qs + kGroupBytes * i, kGroupBytes, levels + kGroup * i);
  }
  static void put_levels(const std::uint8_t* levels, Block& block) {
    for (int i = 0; i < kGroups; ++i) put_fp4_levels(levels + kGroup * i, kGroupBytes, block.qs + kGroupBytes * i);
  }
  static void lines(const Block& block, float* scales, float* offsets) {
    for (int i = 0; i < kGroups; ++i) {
      scales[i] = half_of_ue4m3(block.d[i]);
      offsets[i] = 0;
    }
  }
};

}  // namespace ggufmill::reference
