#pragma once
// Fields of blocks: bits and nibbles in bytes, and words, which are little-endian and unaligned.

#include <cstdint>
#include <cstring>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill::ik {

// Descriptions of fields for the kernel ABI.
constexpr ggufmill_field half_in_block(std::uint32_t offset) {
  return {GGUFMILL_SCALE_F16, GGUFMILL_IN_BLOCK, offset, 1};
}
constexpr ggufmill_field words_in_block(std::uint32_t offset, std::uint32_t count) {
  return {GGUFMILL_WORD_16, GGUFMILL_IN_BLOCK, offset, count};
}
inline constexpr ggufmill_field kHalfInHeader{GGUFMILL_SCALE_F16, GGUFMILL_IN_ROW_HEADER, 0, 1};
inline constexpr ggufmill_field kFloatInHeader{GGUFMILL_SCALE_F32, GGUFMILL_IN_ROW_HEADER, 0, 1};

inline int nibble(const std::uint8_t* bytes, int i) { return bytes[i / 2] >> (4 * (i % 2)) & 15; }
inline void add_nibble(std::uint8_t* bytes, int i, unsigned value) {
  bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] | value << (4 * (i % 2)));
}

// Bits of one byte, from bit `shift` on.
inline unsigned bits_at(const std::uint8_t* bytes, int byte, int shift, unsigned mask) {
  return static_cast<unsigned>(bytes[byte] >> shift) & mask;
}
inline void add_bits(std::uint8_t* bytes, int byte, int shift, unsigned value) {
  bytes[byte] = static_cast<std::uint8_t>(bytes[byte] | value << shift);
}

struct StoredWord {
  std::uint8_t bytes[2];

  bool bit(int i) const { return bytes[i / 8] >> (i % 8) & 1; }
  void set(int i) { bytes[i / 8] = static_cast<std::uint8_t>(bytes[i / 8] | 1u << (i % 8)); }
  unsigned load() const { return bytes[0] | static_cast<unsigned>(bytes[1]) << 8; }
  void store(unsigned value) {
    bytes[0] = static_cast<std::uint8_t>(value);
    bytes[1] = static_cast<std::uint8_t>(value >> 8);
  }
};

struct StoredFloat {
  std::uint8_t bytes[4];

  float load() const {
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits |= static_cast<std::uint32_t>(bytes[i]) << (8 * i);
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  void store(float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; ++i) bytes[i] = static_cast<std::uint8_t>(bits >> (8 * i));
  }
};

}  // namespace ggufmill::ik
