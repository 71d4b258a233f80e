#pragma once
// Two-bit parts of the 256 levels of a super-block. Each half of 128 elements takes 32 bytes; byte i holds elements i,
// i + 32, i + 64 and i + 96 of the half, from the low to the high bits.

#include <cstdint>

namespace ggufmill::reference {

// Packs bits `shift` and `shift` + 1 of every level.
inline void pack_crumbs(const std::uint8_t* levels, int shift, std::uint8_t* bytes) {
  for (int i = 0; i < 64; ++i) {
    const std::uint8_t* first = levels + (i / 32) * 128 + i % 32;
    unsigned byte = 0;
    for (int part = 0; part < 4; ++part) byte |= ((first[32 * part] >> shift) & 3u) << (2 * part);
    bytes[i] = static_cast<std::uint8_t>(byte);
  }
}

// Returns the two bits of element `i`.
inline unsigned crumb(const std::uint8_t* bytes, int i) {
  return (bytes[(i / 128) * 32 + i % 32] >> (2 * (i % 128 / 32))) & 3u;
}

}  // namespace ggufmill::reference
