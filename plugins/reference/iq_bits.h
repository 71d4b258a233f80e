#pragma once
// Bit fields in the bytes of a block: little-endian, unaligned words. The put functions require the field to be zero
// beforehand.

#include <cstdint>

namespace ggufmill::reference {

inline std::uint32_t load_u16(const std::uint8_t* bytes) { return bytes[0] | std::uint32_t{bytes[1]} << 8; }
inline std::uint32_t load_u32(const std::uint8_t* bytes) { return load_u16(bytes) | load_u16(bytes + 2) << 16; }

inline void put_u8(std::uint8_t& byte, unsigned bits) { byte = static_cast<std::uint8_t>(byte | bits); }

inline void put_u16(std::uint8_t* bytes, std::uint32_t bits) {
  put_u8(bytes[0], bits & 0xff);
  put_u8(bytes[1], bits >> 8 & 0xff);
}

inline void put_u32(std::uint8_t* bytes, std::uint32_t bits) {
  put_u16(bytes, bits & 0xffff);
  put_u16(bytes + 2, bits >> 16);
}

}  // namespace ggufmill::reference
