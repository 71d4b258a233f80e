#include "pipeline/core/finite.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ggufmill {
namespace {

template <class Word>
Word load(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// An IEEE number is NaN or infinite if all bits of its exponent are set.
template <class Word, Word kExponent>
bool is_bad(Word word, Word limit = kExponent) {
  return (word & kExponent) >= limit;
}

// Returns the index of the first bad one of `count` words that are `stride` bytes apart.
template <class Word, Word kExponent>
std::size_t first_bad_strided(const std::byte* words, std::size_t count, std::size_t stride, Word limit = kExponent) {
  for (std::size_t i = 0; i < count; ++i)
    if (is_bad<Word, kExponent>(load<Word>(words + i * stride), limit)) return i;
  return count;
}

// The same for adjacent words, using GCC's vector extension: the exponents of all words are bits of the highest 16 (or
// 8) bits, so that the greatest one of many reaches the limit exactly if one of them is bad.
template <class Word, Word kExponent>
std::size_t first_bad_dense(const std::byte* words, std::size_t count, Word limit = kExponent) {
  using Lane = std::conditional_t<sizeof(Word) == 1, std::uint8_t, std::int16_t>;
  typedef Word Words __attribute__((vector_size(16)));
  typedef Lane Lanes __attribute__((vector_size(16)));
  constexpr std::size_t kVectors = 32, kChunk = kVectors * sizeof(Words) / sizeof(Word);
  const auto least_bad = static_cast<Lane>(limit >> 8 * (sizeof(Word) - sizeof(Lane)));
  const auto exponents = (Lanes)(Words{} + kExponent);
  std::size_t i = 0;
  for (; i + kChunk <= count; i += kChunk) {
    Lanes a = {}, b = {};  // the greatest of every other vector, so that no maximum has to wait for the one before
    const auto take = [&](std::size_t vector, Lanes& greatest) {
      Lanes next;
      std::memcpy(&next, words + i * sizeof(Word) + vector * sizeof(next), sizeof(next));
      next &= exponents;
      greatest = next > greatest ? next : greatest;
    };
    for (std::size_t vector = 0; vector < kVectors; vector += 4) {
      take(vector, a), take(vector + 1, b);
      take(vector + 2, a), take(vector + 3, b);
    }
    const auto bad = (a >= least_bad) | (b >= least_bad);
    std::uint64_t halves[2];
    std::memcpy(halves, &bad, sizeof(halves));
    if ((halves[0] | halves[1]) != 0) break;
  }
  return i + first_bad_strided<Word, kExponent>(words + i * sizeof(Word), count - i, sizeof(Word), limit);
}

// Returns the first of `count` parts, `stride` bytes apart, in which a scale of the field is bad.
template <class Word, Word kExponent>
std::size_t first_bad(const BlockField& field, std::size_t stride, const std::byte* parts, std::size_t count) {
  if constexpr (kExponent >> (8 * sizeof(Word) - 1) == 0)  // E8M0 has no sign bit to carry into
    if (stride == sizeof(Word)) return first_bad_dense<Word, kExponent>(parts, count);
  std::size_t first = count;
  for (std::size_t scale = 0; scale < field.count; ++scale)
    first = first_bad_strided<Word, kExponent>(parts + field.offset + scale * sizeof(Word), first, stride);
  return first;
}

// The scale is an F16 whose nibbles are the high nibbles of four 16-bit words; only the last two contain the exponent.
std::size_t first_bad_iq1m(const BlockField& field, std::size_t stride, const std::byte* parts, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* words = parts + i * stride + field.offset;
    const auto nibble = [&](int word) { return load<std::uint16_t>(words + 2 * word) >> 12; };
    if (is_bad<std::uint16_t, 0x7c00>(static_cast<std::uint16_t>(nibble(3) << 12 | nibble(2) << 8))) return i;
  }
  return count;
}

std::size_t first_bad(const BlockField& field, std::size_t stride, const std::byte* parts, std::size_t count) {
  switch (field.format) {
    case FieldFormat::kF16:
      return first_bad<std::uint16_t, 0x7c00>(field, stride, parts, count);
    case FieldFormat::kBf16:
      return first_bad<std::uint16_t, 0x7f80>(field, stride, parts, count);
    case FieldFormat::kF32:
      return first_bad<std::uint32_t, 0x7f800000>(field, stride, parts, count);
    case FieldFormat::kF64:
      return first_bad<std::uint64_t, 0x7ff0000000000000>(field, stride, parts, count);
    case FieldFormat::kE8m0:
      return first_bad<std::uint8_t, 0xff>(field, stride, parts, count);
    case FieldFormat::kE4m3:
      return first_bad<std::uint8_t, 0x7f>(field, stride, parts, count);
    case FieldFormat::kE5m2:
      return first_bad<std::uint8_t, 0x7c>(field, stride, parts, count);
    case FieldFormat::kIq1m:
      return first_bad_iq1m(field, stride, parts, count);
    default:
      return count;
  }
}

bool is_bad_header(const TypeInfo& type, const std::byte* header) {
  return std::ranges::any_of(type.fields, [&](const BlockField& field) {
    return field.in_header && first_bad(field, type.row_header_bytes, header, 1) == 0;
  });
}

}  // namespace

std::size_t first_not_finite(std::span<const float> values) {
  return first_bad_dense<std::uint32_t, 0x7f800000>(std::as_bytes(values).data(), values.size());
}

std::size_t first_not_finite(const TypeInfo& type, const std::byte* stored, std::span<const float> values) {
  const FieldFormat format = type.scales().format;
  const bool is_half = type.block_elements == 1 && (format == FieldFormat::kF16 || format == FieldFormat::kBf16);
  return is_half ? first_bad_block(type, stored, values.size()) : first_not_finite(values);
}

std::uint16_t exponent_limit(const TypeInfo& type) {
  constexpr std::uint16_t kInfinity = 0x7f80, kBias = 127;
  constexpr auto power_of_two = [](int exponent) { return static_cast<std::uint16_t>((exponent + kBias) << 7); };
  if (type.type_class != TypeClass::kQuantized) return kInfinity;
  switch (type.scales().format) {
    case FieldFormat::kF16:
    case FieldFormat::kIq1m:
      return power_of_two(28);  // the largest value of a block, in Q6_K and IQ4_XS: 65504 * 127 * 32
    case FieldFormat::kNone:
      return power_of_two(12);  // NVFP4, whose scales are E4M3 without a sign: 448 * 6
    default:
      return kInfinity;
  }
}

std::size_t first_beyond(const TypeInfo& type, const std::byte* stored, std::span<const float> values,
                         std::uint16_t limit) {
  const FieldFormat format = type.scales().format;
  if (type.block_elements == 1 && format == FieldFormat::kF16) return first_not_finite(type, stored, values);
  if (type.block_elements == 1 && format == FieldFormat::kBf16)
    return first_bad_dense<std::uint16_t, 0x7f80>(stored, values.size(), limit);
  return first_bad_dense<std::uint32_t, 0x7f800000>(std::as_bytes(values).data(), values.size(),
                                                    static_cast<std::uint32_t>(limit) << 16);
}

std::size_t largest_of(std::span<const float> values) {
  std::size_t largest = 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (std::fabs(values[i]) > std::fabs(values[largest])) largest = i;
  return largest;
}

std::string help_for_too_large(const TypeInfo& type) {
  if (type.is_f32()) return "repair the source: F32 has the greatest range of all types that tensors are converted to";
  if (type.scales().format == FieldFormat::kBf16)
    return "choose F32, which has a slightly greater range, or repair the source";
  return "choose a type with a greater range for this tensor, such as BF16 or F32";
}

std::size_t first_bad_block(const TypeInfo& type, const std::byte* blocks, std::size_t count) {
  for (const BlockField& field : type.fields)
    if (is_scale(field.format) && !field.in_header) count = first_bad(field, type.block_bytes, blocks, count);
  return count;
}

std::size_t next_bad_block(const TypeInfo& type, std::uint64_t columns, std::span<const std::byte> rows,
                           std::size_t from) {
  if (type.row_header_bytes == 0)
    return from + first_bad_block(type, rows.data() + from * type.block_bytes, rows.size() / type.block_bytes - from);
  const std::size_t blocks = columns / type.block_elements, bytes = row_bytes(type, columns);
  const std::size_t end = rows.size() / bytes * blocks;
  for (std::size_t at = from; at < end; at = (at / blocks + 1) * blocks) {
    const std::byte* const row = rows.data() + at / blocks * bytes;
    const std::size_t first = at % blocks;
    if (first == 0 && is_bad_header(type, row)) return at;
    const std::byte* const block = row + type.row_header_bytes + first * type.block_bytes;
    if (const std::size_t bad = first_bad_block(type, block, blocks - first); bad != blocks - first) return at + bad;
  }
  return end;
}

std::span<std::byte> bytes_of_bad_block(const TypeInfo& type, std::uint64_t columns, std::span<std::byte> rows,
                                        std::size_t block) {
  if (type.row_header_bytes == 0) return rows.subspan(block * type.block_bytes, type.block_bytes);
  const std::size_t blocks = columns / type.block_elements, bytes = row_bytes(type, columns);
  const std::span<std::byte> row = rows.subspan(block / blocks * bytes, bytes);
  if (is_bad_header(type, row.data())) return row;
  return row.subspan(type.row_header_bytes + block % blocks * type.block_bytes, type.block_bytes);
}

const char* describe_bad_block(const TypeInfo& type, const std::byte* block) {
  if (type.block_elements != 1) return "a scale that is not finite";
  const auto is_infinite = [&]() -> bool {  // all bits of the fraction are zero
    switch (type.scales().format) {
      case FieldFormat::kF16:
        return (load<std::uint16_t>(block) & 0x3ff) == 0;
      case FieldFormat::kBf16:
        return (load<std::uint16_t>(block) & 0x7f) == 0;
      case FieldFormat::kF32:
        return (load<std::uint32_t>(block) & 0x7fffff) == 0;
      case FieldFormat::kE4m3:
        return false;
      case FieldFormat::kE5m2:
        return (load<std::uint8_t>(block) & 3) == 0;
      default:
        return (load<std::uint64_t>(block) & 0xfffffffffffff) == 0;
    }
  };
  return is_infinite() ? "infinity" : "NaN";
}

}  // namespace ggufmill
