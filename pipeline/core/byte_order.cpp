#include "pipeline/core/byte_order.h"

#include <algorithm>
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

// Swaps the words of one block, or of one header of a row.
void swap_part(const TypeInfo& type, bool is_header, std::byte* part) {
  for (const BlockField& field : type.fields)
    if (field.count != 0 && field.in_header == is_header)
      swap_words(field.width(), {part + field.offset, field.bytes()});
}

void swap_blocks(const TypeInfo& type, std::span<std::byte> blocks) {
  const BlockField& first = type.fields[0];
  if (first.count != 0 && first.width() == type.block_bytes)
    return swap_words(type.block_bytes, blocks);  // plain elements such as F32: one run
  const bool has_words = std::ranges::any_of(
      type.fields, [](const BlockField& field) { return field.count != 0 && !field.in_header && field.width() > 1; });
  if (!has_words) return;
  for (; blocks.size() >= type.block_bytes; blocks = blocks.subspan(type.block_bytes))
    swap_part(type, false, blocks.data());
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

void swap_words(const TypeInfo& type, std::uint64_t columns, std::span<std::byte> rows) {
  if (type.row_header_bytes == 0) return swap_blocks(type, rows);
  const std::size_t bytes = row_bytes(type, columns);
  for (; rows.size() >= bytes; rows = rows.subspan(bytes)) {
    swap_part(type, true, rows.data());
    swap_blocks(type, rows.subspan(type.row_header_bytes, bytes - type.row_header_bytes));
  }
}

bool can_swap(const TypeInfo& type) { return type.is_described(); }

}  // namespace ggufmill
