#include "pipeline/core/byte_order.h"

#include <cstdint>
#include <cstring>

namespace ggufmill {
namespace {

std::uint16_t swapped(std::uint16_t word) { return __builtin_bswap16(word); }
std::uint32_t swapped(std::uint32_t word) { return __builtin_bswap32(word); }
std::uint64_t swapped(std::uint64_t word) { return __builtin_bswap64(word); }

// Words may be unaligned, as blocks have odd sizes.
template <class Word>
void swap_all(std::byte* at, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i, at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, at, sizeof word);
    word = swapped(word);
    std::memcpy(at, &word, sizeof word);
  }
}

void swap_field(const WordField& field, std::byte* block) {
  swap_words(field.width, {block + field.offset, std::size_t{field.count} * field.width});
}

}  // namespace

void swap_words(std::size_t width, std::span<std::byte> bytes) {
  switch (width) {
    case 2:
      return swap_all<std::uint16_t>(bytes.data(), bytes.size() / 2);
    case 4:
      return swap_all<std::uint32_t>(bytes.data(), bytes.size() / 4);
    case 8:
      return swap_all<std::uint64_t>(bytes.data(), bytes.size() / 8);
    default:
      return;  // single bytes have no byte order
  }
}

void swap_words(const TypeInfo& type, std::span<std::byte> blocks) {
  if (type.words[0].width == type.block_bytes)
    return swap_words(type.block_bytes, blocks);  // plain elements such as F32: one run
  if (type.words[0].count == 0) return;           // only single bytes
  for (; blocks.size() >= type.block_bytes; blocks = blocks.subspan(type.block_bytes))
    for (const WordField& field : type.words)
      if (field.count != 0) swap_field(field, blocks.data());
}

bool can_swap(const TypeInfo& type) { return type.type_class != TypeClass::kForeign; }

}  // namespace ggufmill
