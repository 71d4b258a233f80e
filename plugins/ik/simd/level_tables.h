#pragma once
// The tables of levels of the nonlinear types (plugins/ik/nonlinear.h) in lanes.

#include "plugins/ik/nonlinear.h"
#include "plugins/simd/level_table.h"

namespace ggufmill::simd {

template <>
inline constexpr std::array<float, 6> kGuess<4>{1.903f, 0.06452f};
template <>
inline constexpr std::array<float, 6> kGuess<8>{3.861f, 0.06944f};
template <>
inline constexpr std::array<float, 6> kGuess<32>{16.08f, 0.1636f, -3.968e-5f, -2.7e-6f};
template <>
inline constexpr std::array<float, 6> kGuess<64>{32.86f, 0.3561f, -1.679e-4f, -1.206e-5f, 8.359e-9f, 3.655e-10f};

// The two tables of a type.
template <std::size_t kSize>
struct LevelTables {
  LevelTable<kSize> plain, shifted;

  constexpr explicit LevelTables(const ik::Tables<kSize>& tables)
      : plain(tables.plain), shifted(tables.shifted, static_cast<int>(tables.shifted[0] - tables.plain[0])) {}
  constexpr const LevelTable<kSize>& operator[](bool is_shifted) const { return is_shifted ? shifted : plain; }

  // Level and value where a lane's sub-block uses the shifted table, and where it does not.
  Words level(Mask is_shifted, Floats x) const { return choose(is_shifted, shifted.level(x), plain.level(x)); }
  Floats value(Mask is_shifted, Words level) const {
    const Floats value = plain.value(level);
    return choose(is_shifted, value + floats(shifted.value(std::size_t{0}) - plain.value(std::size_t{0})), value);
  }
};

template <std::size_t kSize>
inline constexpr LevelTables<kSize> kLevels = [] {
  if constexpr (kSize == 4) return LevelTables<kSize>(ik::kValues2);
  if constexpr (kSize == 8) return LevelTables<kSize>(ik::kValues3);
  if constexpr (kSize == 16) return LevelTables<kSize>(ik::kValues4);
  if constexpr (kSize == 32) return LevelTables<kSize>(ik::kValues5);
  if constexpr (kSize == 64) return LevelTables<kSize>(ik::kValues6);
}();

static_assert(kLevels<4>.plain.guesses_well() && kLevels<4>.shifted.guesses_well());
static_assert(kLevels<8>.plain.guesses_well() && kLevels<8>.shifted.guesses_well());
static_assert(kLevels<16>.plain.guesses_well() && kLevels<16>.shifted.guesses_well());
static_assert(kLevels<32>.plain.guesses_well() && kLevels<32>.shifted.guesses_well());
static_assert(kLevels<64>.plain.guesses_well() && kLevels<64>.shifted.guesses_well());

}  // namespace ggufmill::simd
