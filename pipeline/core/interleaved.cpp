#include "pipeline/core/interleaved.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <tuple>

namespace ggufmill {
namespace {

constexpr std::uint32_t kMaxRows = 8;
constexpr std::uint32_t kMaxSignedBytes = 4 * 98;  // of a group's block with sign codes: of rows of IQ3_XXS

// Joins moves of the same bytes, and then those of adjacent bytes.
std::vector<BitMove> joined(std::vector<BitMove> moves) {
  const auto by = [](auto key) { return [key](const BitMove& a, const BitMove& b) { return key(a) < key(b); }; };
  std::ranges::sort(moves, by([](const BitMove& m) { return std::tuple(m.row, m.plain, m.group, m.shift); }));
  std::vector<BitMove> bytes;
  for (const BitMove& move : moves)
    if (!bytes.empty() && bytes.back().row == move.row && bytes.back().plain == move.plain &&
        bytes.back().group == move.group && bytes.back().shift == move.shift)
      bytes.back().mask |= move.mask;
    else
      bytes.push_back(move);
  std::ranges::sort(bytes, by([](const BitMove& m) { return std::tuple(m.row, m.shift, m.mask, m.group, m.plain); }));
  std::vector<BitMove> runs;
  for (const BitMove& move : bytes) {
    BitMove* const last = runs.empty() ? nullptr : &runs.back();
    if (last && last->row == move.row && last->shift == move.shift && last->mask == move.mask &&
        last->group + last->bytes == move.group && last->plain + last->bytes == move.plain)
      ++last->bytes;
    else
      runs.push_back(move);
  }
  // In the order of the group's bytes, which are written one after another.
  std::ranges::sort(runs, by([](const BitMove& m) { return std::tuple(m.group, m.plain, m.row); }));
  return runs;
}

template <class Word>
Word load(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

template <class Word>
constexpr Word in_every_byte(std::uint8_t mask) {
  return static_cast<Word>(Word(~Word{0}) / 0xff * mask);
}

// Adds some bits of one word to another. A shift moves bits across bytes only to places that the mask clears.
template <class Word>
void to_group(const BitMove& move, const std::byte* row, std::byte* group) {
  const Word from = load<Word>(row);
  const Word moved = static_cast<Word>(move.shift >= 0 ? from << move.shift : from >> -move.shift);
  const Word word = load<Word>(group) | (moved & in_every_byte<Word>(move.mask));
  std::memcpy(group, &word, sizeof word);
}

template <class Word>
void to_row(const BitMove& move, const std::byte* group, std::byte* row) {
  const Word from = load<Word>(group) & in_every_byte<Word>(move.mask);
  const Word moved = static_cast<Word>(move.shift >= 0 ? from >> move.shift : from << -move.shift);
  const Word word = load<Word>(row) | moved;
  std::memcpy(row, &word, sizeof word);
}

// Calls one of the functions for every 8, 4 or single byte of a move.
template <class OfEight, class OfFour, class OfOne>
void in_words(std::uint32_t bytes, const OfEight& of_eight, const OfFour& of_four, const OfOne& of_one) {
  std::uint32_t i = 0;
  for (; i + 8 <= bytes; i += 8) of_eight(i);
  for (; i + 4 <= bytes; i += 4) of_four(i);
  for (; i < bytes; ++i) of_one(i);
}

// Number of low bits of a word that belong to no sign code.
unsigned first_sign(const SignCodes& signs) { return 8 * signs.bytes - 7; }

template <class Change>
void change_signs(const SignCodes& signs, std::byte* group, const Change& change) {
  const std::uint32_t low = (1u << first_sign(signs)) - 1;
  for (std::uint32_t i = 0; i < signs.count; ++i) {
    std::byte* const place = group + signs.offset + i * signs.bytes;
    std::uint32_t word = 0;
    for (std::uint32_t b = 0; b < signs.bytes; ++b) word |= std::to_integer<std::uint32_t>(place[b]) << (8 * b);
    word = (word & low) | (change(word & ~low) & ~low);
    for (std::uint32_t b = 0; b < signs.bytes; ++b) place[b] = static_cast<std::byte>(word >> (8 * b));
  }
}

std::uint32_t summed_up(std::uint32_t code) {
  for (const unsigned distance : {1u, 2u, 4u}) code ^= code << distance;
  return code;
}

std::uint32_t differences(std::uint32_t code) { return code ^ code << 1; }

}  // namespace

Interleaving::Interleaving(const InterleavedType& type)
    : rows_(type.rows), header_bytes_(type.row_header_bytes), block_bytes_(type.block_bytes) {
  InterleavedLayout layout = interleaved_layout(type.plain, type.rows);
  moves_ = joined(std::move(layout.moves));
  signs_ = layout.signs;
}

const Interleaving& Interleaving::of(const TypeInfo& type) {
  static const std::vector<Interleaving> kAll = [] {
    std::vector<Interleaving> all;
    for (const InterleavedType& each : interleaved_types()) all.push_back(Interleaving(each));
    return all;
  }();
  const std::span<const InterleavedType> types = interleaved_types();
  const auto found = std::ranges::find(types, type.id, &InterleavedType::id);
  if (found == types.end()) std::abort();
  return kAll[static_cast<std::size_t>(found - types.begin())];
}

void Interleaving::interleave(std::span<const std::byte* const> rows, std::uint64_t blocks, std::byte* group) const {
  for (std::uint32_t k = 0; k < rows_; ++k) std::memcpy(group + k * header_bytes_, rows[k], header_bytes_);
  std::byte* into = group + rows_ * header_bytes_;
  std::array<const std::byte*, kMaxRows> from{};
  for (std::uint32_t k = 0; k < rows_; ++k) from[k] = rows[k] + header_bytes_;
  for (std::uint64_t block = 0; block < blocks; ++block, into += rows_ * block_bytes_) {
    std::memset(into, 0, rows_ * block_bytes_);
    for (const BitMove& move : moves_) {
      const std::byte* const row = from[move.row] + move.plain;
      std::byte* const place = into + move.group;
      in_words(
          move.bytes, [&](std::uint32_t i) { to_group<std::uint64_t>(move, row + i, place + i); },
          [&](std::uint32_t i) { to_group<std::uint32_t>(move, row + i, place + i); },
          [&](std::uint32_t i) { to_group<std::uint8_t>(move, row + i, place + i); });
    }
    if (signs_.count != 0) change_signs(signs_, into, summed_up);
    for (std::uint32_t k = 0; k < rows_; ++k) from[k] += block_bytes_;
  }
}

void Interleaving::separate(const std::byte* group, std::uint64_t blocks, std::span<std::byte* const> rows) const {
  for (std::uint32_t k = 0; k < rows_; ++k) std::memcpy(rows[k], group + k * header_bytes_, header_bytes_);
  const std::byte* from = group + rows_ * header_bytes_;
  std::array<std::byte*, kMaxRows> into{};
  for (std::uint32_t k = 0; k < rows_; ++k) into[k] = rows[k] + header_bytes_;
  std::array<std::byte, kMaxSignedBytes> changed;
  for (std::uint64_t block = 0; block < blocks; ++block, from += rows_ * block_bytes_) {
    const std::byte* source = from;
    if (signs_.count != 0) {
      std::memcpy(changed.data(), from, rows_ * block_bytes_);
      change_signs(signs_, changed.data(), differences);
      source = changed.data();
    }
    for (std::uint32_t k = 0; k < rows_; ++k) std::memset(into[k], 0, block_bytes_);
    for (const BitMove& move : moves_) {
      const std::byte* const place = source + move.group;
      std::byte* const row = into[move.row] + move.plain;
      in_words(
          move.bytes, [&](std::uint32_t i) { to_row<std::uint64_t>(move, place + i, row + i); },
          [&](std::uint32_t i) { to_row<std::uint32_t>(move, place + i, row + i); },
          [&](std::uint32_t i) { to_row<std::uint8_t>(move, place + i, row + i); });
    }
    for (std::uint32_t k = 0; k < rows_; ++k) into[k] += block_bytes_;
  }
}

}  // namespace ggufmill
