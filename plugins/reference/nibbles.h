#pragma once
// Packs the levels of a block of 32 as nibbles, with the fifth bits, if any, stored separately. The low nibbles hold
// the first half of the block, the high nibbles the second half.

#include <cstdint>

namespace ggufmill::reference {

inline void pack_nibbles(const std::uint8_t* levels, std::uint8_t* qs) {
  for (int j = 0; j < 16; ++j) qs[j] = static_cast<std::uint8_t>((levels[j] & 0xf) | (levels[j + 16] & 0xf) << 4);
}

inline void unpack_nibbles(const std::uint8_t* qs, std::uint8_t* levels) {
  for (int j = 0; j < 16; ++j) {
    levels[j] = qs[j] & 0xf;
    levels[j + 16] = qs[j] >> 4;
  }
}

// Packs bit 4 of level i as bit i of the four bytes.
inline void pack_fifth_bits(const std::uint8_t* levels, std::uint8_t* qh) {
  for (int byte = 0; byte < 4; ++byte) {
    unsigned bits = 0;
    for (int j = 0; j < 8; ++j) bits |= ((levels[8 * byte + j] >> 4) & 1u) << j;
    qh[byte] = static_cast<std::uint8_t>(bits);
  }
}

inline void unpack_fifth_bits(const std::uint8_t* qh, std::uint8_t* levels) {
  for (int j = 0; j < 32; ++j) levels[j] = static_cast<std::uint8_t>(levels[j] | ((qh[j / 8] >> (j % 8)) & 1) << 4);
}

}  // namespace ggufmill::reference
