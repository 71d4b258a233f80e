// The types of ik_llama.cpp, for the program: what it knows of them without the kernel module. Each interleaved type is
// arranged as positions of fields in the block of a row and in the block of a group.
#include "pipeline/core/type_family.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace ggufmill {
namespace {

// A block has sub-blocks of 32 values. In a group, the values of a row are cut into quads: 4 values, of which the same
// bits lie in 4 adjacent bytes. An order lists the quads of a sub-block as they are stored, each byte from its low bits
// on.
using QuadOrder = std::array<unsigned, 8>;
constexpr QuadOrder kInOrder{0, 1, 2, 3, 4, 5, 6, 7};
constexpr QuadOrder kEvenFirst{0, 2, 4, 6, 1, 3, 5, 7};
constexpr QuadOrder kHalves{0, 4, 1, 5, 2, 6, 3, 7};
constexpr QuadOrder kPairs{0, 2, 1, 3, 4, 6, 5, 7};

// Positions of bits in the block of a row, by value.
constexpr unsigned nibble_of_16(unsigned i) { return 8 * (i / 32 * 16 + i % 16) + i % 32 / 16 * 4; }
constexpr unsigned nibble_of_32(unsigned i) { return 8 * (i / 64 * 32 + i % 32) + i % 64 / 32 * 4; }
constexpr unsigned nibble_of_64(unsigned i) { return 8 * (i / 128 * 64 + i % 64) + i % 128 / 64 * 4; }
constexpr unsigned pair_of_32(unsigned i) { return 8 * (i / 128 * 32 + i % 32) + i % 128 / 32 * 2; }
constexpr unsigned bit_of_32(unsigned i) { return 8 * (i % 32) + i / 32; }

class LayoutMaker {
 public:
  explicit LayoutMaker(unsigned rows) : rows_(rows) {}

  InterleavedLayout take() { return std::move(layout_); }

  // Moves `width` bits of a row; they need not lie in one byte.
  void bits(unsigned row, unsigned plain, unsigned group, unsigned width) {
    while (width != 0) {
      const unsigned at_once = std::min({width, 8 - plain % 8, 8 - group % 8});
      BitMove move;
      move.row = static_cast<std::uint16_t>(row);
      move.plain = static_cast<std::uint16_t>(plain / 8);
      move.group = static_cast<std::uint16_t>(group / 8);
      move.bytes = 1;
      move.shift = static_cast<std::int8_t>(static_cast<int>(group % 8) - static_cast<int>(plain % 8));
      move.mask = static_cast<std::uint8_t>(((1u << at_once) - 1) << group % 8);
      layout_.moves.push_back(move);
      plain += at_once, group += at_once, width -= at_once;
    }
  }

  // Moves `count` fields of `bytes` bytes from byte `plain` on: field j of row k becomes number j * rows + k at
  // `group`.
  void fields(unsigned bytes, unsigned count, unsigned plain, unsigned group) {
    each(count, [&](unsigned j, unsigned k) {
      bits(k, 8 * (plain + j * bytes), 8 * (group + (j * rows_ + k) * bytes), 8 * bytes);
    });
  }

  // Moves `count` numbers of `width` bits, which are at bit position(j): number j of row k is in byte (j * rows + k) %
  // `bytes` of the field at byte `group`, whose bytes are filled from bit `first` on, `step` bits apart.
  template <class Position>
  void numbers(unsigned width, unsigned count, const Position& position, unsigned group, unsigned bytes, unsigned step,
               unsigned first = 0) {
    each(count, [&](unsigned j, unsigned k) {
      const unsigned i = j * rows_ + k;
      bits(k, position(j), 8 * (group + i % bytes) + i / bytes * step + first, width);
    });
  }

  // Moves `width` bits of each of `count` values, which are at bit position(i) of the field at byte `plain`.
  template <class Position>
  void values(unsigned width, unsigned count, const Position& position, unsigned plain, unsigned group,
              const QuadOrder& order) {
    const unsigned in_byte = 8 / width, slice = 4 * rows_;
    each(count / 32, [&](unsigned sub_block, unsigned k) {
      for (unsigned slot = 0; slot < order.size(); ++slot)
        for (unsigned i = 0; i < 4; ++i) {
          const unsigned byte = group + sub_block * width * slice + slot / in_byte * slice + 4 * k + i;
          bits(k, 8 * plain + position(32 * sub_block + 4 * order[slot] + i), 8 * byte + slot % in_byte * width, width);
        }
    });
  }

  // Moves one bit for each of 16 sub-blocks: those with even numbers of row k fill byte k, the others byte rows + k.
  void table_bits(unsigned plain, unsigned group) {
    each(16, [&](unsigned j, unsigned k) { bits(k, 8 * plain + j, 8 * (group + k + j % 2 * rows_) + j / 2, 1); });
  }

  void signs(unsigned offset, unsigned count, unsigned bytes) {
    layout_.signs = {static_cast<std::uint16_t>(offset), static_cast<std::uint16_t>(count),
                     static_cast<std::uint16_t>(bytes)};
  }

  unsigned rows() const { return rows_; }

 private:
  template <class Function>
  void each(unsigned count, const Function& function) {
    for (unsigned j = 0; j < count; ++j)
      for (unsigned k = 0; k < rows_; ++k) function(j, k);
  }

  unsigned rows_;
  InterleavedLayout layout_;
};

// Positions in a block from byte `at` on.
auto nibbles(unsigned at) {
  return [at](unsigned j) { return 8 * at + 4 * j; };
}
auto pairs(unsigned at) {
  return [at](unsigned j) { return 8 * at + 2 * j; };
}
auto single_bits(unsigned at) {
  return [at](unsigned j) { return 8 * at + j; };
}

// ---- types of llama.cpp ----

// A scale, and 32 nibbles of which byte j has values j and j + 16.
void nibbles_and_scale(LayoutMaker& to, unsigned scale_bytes, const QuadOrder& order) {
  to.fields(scale_bytes, 1, 0, 0);
  to.values(4, 32, nibble_of_16, scale_bytes, scale_bytes * to.rows(), order);
}

void q5_0(LayoutMaker& to) {
  to.fields(2, 1, 0, 0);
  to.values(
      1, 32, [](unsigned i) { return i; }, 2, 8, kHalves);
  to.values(4, 32, nibble_of_16, 6, 24, kEvenFirst);
}

void q6_0(LayoutMaker& to) {
  const auto high = [](unsigned i) { return 8 * (i % 8) + i % 16 / 8 * 4 + i / 16 * 2; };
  to.fields(2, 1, 0, 0);
  to.values(2, 32, high, 2, 8, kInOrder);
  to.values(4, 32, nibble_of_16, 10, 40, kEvenFirst);
}

void q8_0(LayoutMaker& to) {
  to.fields(2, 1, 0, 0);
  to.values(
      8, 32, [](unsigned i) { return 8 * i; }, 2, 2 * to.rows(), kInOrder);
}

void q2_k(LayoutMaker& to) {
  to.fields(2, 2, 80, 0);
  to.fields(1, 16, 0, 16);
  to.values(2, 256, pair_of_32, 16, 80, kInOrder);
}

void q3_k(LayoutMaker& to) {
  const auto low = [](unsigned j) { return 8 * (96 + j % 8) + j / 8 * 4; };
  const auto high = [](unsigned j) { return 8 * (104 + j % 4) + j / 4 * 2; };
  to.fields(2, 1, 108, 0);
  to.numbers(2, 16, high, 8, 16, 2);
  to.numbers(4, 16, low, 24, 32, 4);
  to.values(1, 256, bit_of_32, 0, 56, kInOrder);
  to.values(2, 256, pair_of_32, 32, 184, kInOrder);
}

// Two scales and 8 times 6 bits of a scale and a minimum, in 12 bytes.
void scales_and_minimums(LayoutMaker& to) {
  const auto scale_low = [](unsigned j) { return 8 * (j < 4 ? 4 + j : 8 + j); };
  const auto scale_high = [](unsigned j) { return j < 4 ? 8 * (4 + j) + 4 : 8 * j + 6; };
  const auto minimum_low = [](unsigned j) { return j < 4 ? 8 * (8 + j) : 8 * (8 + j) + 4; };
  const auto minimum_high = [](unsigned j) { return j < 4 ? 8 * (8 + j) + 4 : 8 * (4 + j) + 6; };
  to.fields(2, 2, 0, 0);
  to.numbers(2, 8, scale_high, 16, 16, 4);
  to.numbers(2, 8, minimum_high, 16, 16, 4, 2);
  to.numbers(4, 8, scale_low, 32, 32, 8);
  to.numbers(4, 8, minimum_low, 32, 32, 8, 4);
}

void q4_k(LayoutMaker& to) {
  scales_and_minimums(to);
  to.values(4, 256, nibble_of_32, 16, 64, kEvenFirst);
}

void q5_k(LayoutMaker& to) {
  scales_and_minimums(to);
  to.values(1, 256, bit_of_32, 16, 64, kPairs);
  to.values(4, 256, nibble_of_32, 48, 192, kEvenFirst);
}

void q6_k(LayoutMaker& to) {
  to.fields(2, 1, 208, 0);
  to.fields(1, 16, 192, 8);
  to.values(2, 256, pair_of_32, 128, 72, kPairs);
  to.values(4, 256, nibble_of_64, 0, 328, kEvenFirst);
}

void iq4_xs(LayoutMaker& to) {
  to.fields(2, 1, 0, 0);
  to.numbers(2, 8, pairs(2), 16, 16, 2);
  to.numbers(4, 8, nibbles(4), 32, 32, 4);
  to.values(4, 256, nibble_of_16, 8, 64, kInOrder);
}

// Bits of the scale follow four sign codes of 7 bits; in a group, each is the lowest bit of a byte with one code.
void signs_and_scale(LayoutMaker& to, unsigned plain, unsigned distance) {
  for (unsigned j = 0; j < 8; ++j)
    for (unsigned k = 0; k < to.rows(); ++k)
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned code = 8 * (plain + j * distance), byte = 8 * (8 + 4 * (j * to.rows() + k) + i);
        to.bits(k, code + 28 + i, byte, 1);
        to.bits(k, code + 7 * i, byte + 1, 7);
      }
  to.signs(8, 128, 1);
}

void iq2_xxs(LayoutMaker& to) {
  to.fields(2, 1, 0, 0);
  signs_and_scale(to, 6, 8);
  for (unsigned j = 0; j < 8; ++j)
    for (unsigned k = 0; k < to.rows(); ++k) to.bits(k, 8 * (2 + 8 * j), 8 * (136 + 4 * (j * to.rows() + k)), 32);
}

void iq2_xs(LayoutMaker& to) {
  to.fields(2, 1, 0, 0);
  to.fields(8, 8, 2, 8);
  to.fields(1, 8, 66, 264);
  to.signs(8, 128, 2);
}

void iq2_s(LayoutMaker& to) {
  to.fields(2, 1, 0, 0);
  to.fields(4, 8, 2, 8);
  to.fields(1, 8, 66, 136);
  to.fields(4, 8, 34, 168);
  to.fields(1, 8, 74, 296);
}

void iq3_xxs(LayoutMaker& to) {
  to.fields(2, 1, 0, 0);
  signs_and_scale(to, 66, 4);
  to.fields(8, 8, 2, 136);
}

void iq3_s(LayoutMaker& to) {
  to.fields(2, 1, 0, 0);
  to.fields(1, 8, 66, 264);
  to.numbers(4, 8, nibbles(106), 424, 16, 4);
  for (unsigned j = 0; j < 8; ++j)
    for (unsigned k = 0; k < to.rows(); ++k)
      for (unsigned i = 0; i < 4; ++i) {
        to.bits(k, 8 * (2 + 8 * j + i), 8 * (8 + 32 * j + k + 8 * i), 8);
        to.bits(k, 8 * (2 + 8 * j + i + 4), 8 * (8 + 32 * j + k + 8 * i + 4), 8);
        for (unsigned m = 0; m < 8; ++m)
          to.bits(k, 8 * (74 + 4 * j + m / 2) + i + m % 2 * 4, 8 * (296 + 16 * j + 4 * k + i) + m, 1);
      }
}

// ---- types of ik_llama.cpp ----

void iq2_bn(LayoutMaker& to) {
  to.values(
      2, 64, [](unsigned i) { return 8 * (i % 16) + i / 16 * 2; }, 0, 0, kInOrder);
}

void iq2_k(LayoutMaker& to) {
  to.fields(2, 1, 0, 0);
  to.table_bits(2, 8);
  to.numbers(4, 16, nibbles(4), 16, 32, 4);
  to.values(2, 256, pair_of_32, 12, 48, kInOrder);
}

void iq3_k(LayoutMaker& to) {
  to.fields(2, 1, 0, 0);
  to.table_bits(2, 8);
  to.numbers(1, 16, single_bits(4), 16, 8, 1);
  to.numbers(4, 16, nibbles(6), 24, 32, 4);
  to.values(2, 256, pair_of_32, 14, 56, kInOrder);
  to.values(1, 256, bit_of_32, 78, 312, kInOrder);
}

// The scales of IQ4_K and IQ5_K.
void scales_of_six_bits(LayoutMaker& to) {
  to.fields(2, 1, 0, 0);
  to.table_bits(2, 8);
  to.numbers(2, 16, pairs(4), 16, 16, 2);
  to.numbers(4, 16, nibbles(8), 32, 32, 4);
}

void iq4_k(LayoutMaker& to) {
  scales_of_six_bits(to);
  to.values(4, 256, nibble_of_16, 16, 64, kEvenFirst);
}

void iq5_k(LayoutMaker& to) {
  scales_of_six_bits(to);
  to.values(4, 256, nibble_of_32, 16, 64, kEvenFirst);
  to.values(1, 256, bit_of_32, 144, 576, kEvenFirst);
}

void iq4_ks(LayoutMaker& to) {
  to.fields(1, 8, 0, 0);
  to.values(4, 256, nibble_of_16, 8, 32, kEvenFirst);
}

void iq5_ks(LayoutMaker& to) {
  to.fields(1, 8, 0, 0);
  to.values(4, 256, nibble_of_32, 8, 32, kEvenFirst);
  to.values(1, 256, bit_of_32, 136, 544, kEvenFirst);
}

void iq1_s_r1(LayoutMaker& to) {
  to.fields(1, 4, 0, 0);
  to.fields(2, 1, 4, 16);
}

void iq1_m_r1(LayoutMaker& to) {
  to.fields(1, 4, 0, 0);
  to.fields(1, 2, 4, 16);
  to.fields(1, 1, 6, 24);
}

struct Row {
  std::string_view plain;
  void (*make)(LayoutMaker& to);
};

constexpr Row kRows[] = {
    {"Q4_0", [](LayoutMaker& to) { nibbles_and_scale(to, 2, kHalves); }},
    {"MXFP4", [](LayoutMaker& to) { nibbles_and_scale(to, 1, kHalves); }},
    {"IQ4_NL", [](LayoutMaker& to) { nibbles_and_scale(to, 2, kEvenFirst); }},
    {"Q5_0", q5_0},
    {"Q6_0", q6_0},
    {"Q8_0", q8_0},
    {"Q2_K", q2_k},
    {"Q3_K", q3_k},
    {"Q4_K", q4_k},
    {"Q5_K", q5_k},
    {"Q6_K", q6_k},
    {"IQ2_XXS", iq2_xxs},
    {"IQ2_XS", iq2_xs},
    {"IQ2_S", iq2_s},
    {"IQ3_XXS", iq3_xxs},
    {"IQ3_S", iq3_s},
    {"IQ4_XS", iq4_xs},
    {"IQ2_BN", iq2_bn},
    {"IQ2_K", iq2_k},
    {"IQ3_K", iq3_k},
    {"IQ4_K", iq4_k},
    {"IQ5_K", iq5_k},
    {"IQ4_KS", iq4_ks},
    {"IQ5_KS", iq5_ks},
    {"IQ1_S_R1", iq1_s_r1},
    {"IQ1_M_R1", iq1_m_r1},
};

// Returns the layout of a plain type of kInterleaved in groups of `rows` rows; aborts the program for others.
InterleavedLayout ik_interleaved_layout(std::string_view plain, std::uint32_t rows) {
  LayoutMaker maker(rows);
  for (const Row& row : kRows)
    if (row.plain == plain) {
      row.make(maker);
      return maker.take();
    }
  std::abort();
}

// ---- the family ----

// Source of the numbers: ik_llama.cpp, ggml/include/ggml.h and ggml/src/iqk/iqk_quantize.cpp (MIT).
constexpr ModuleType kModuleTypes[] = {
    {133, "Q6_0"},    {134, "IQ1_BN"}, {135, "IQ2_BN"}, {137, "IQ2_K"},  {138, "IQ3_K"},
    {139, "IQ4_K"},   {140, "IQ5_K"},  {141, "IQ6_K"},  {144, "IQ4_KS"}, {145, "IQ2_KS"},
    {146, "IQ4_KSS"}, {151, "Q8_KV"},  {152, "IQ5_KS"}, {153, "IQ2_KT"}, {154, "IQ3_KT"},
    {155, "IQ4_KT"},  {156, "IQ3_KS"}, {157, "IQ2_KL"}, {158, "IQ1_KT"},
};

constexpr InterleavedType kInterleaved[] = {
    {202, "Q4_0_R8", "Q4_0", 8, 32, 18, 0},
    {206, "Q5_0_R4", "Q5_0", 4, 32, 22, 0},
    {208, "Q8_0_R8", "Q8_0", 8, 32, 34, 0},
    {210, "Q2_K_R4", "Q2_K", 4, 256, 84, 0},
    {211, "Q3_K_R4", "Q3_K", 4, 256, 110, 0},
    {212, "Q4_K_R4", "Q4_K", 4, 256, 144, 0},
    {213, "Q5_K_R4", "Q5_K", 4, 256, 176, 0},
    {214, "Q6_K_R4", "Q6_K", 4, 256, 210, 0},
    {216, "IQ2_XXS_R4", "IQ2_XXS", 4, 256, 66, 0},
    {217, "IQ2_XS_R4", "IQ2_XS", 4, 256, 74, 0},
    {218, "IQ3_XXS_R4", "IQ3_XXS", 4, 256, 98, 0},
    {220, "IQ4_NL_R4", "IQ4_NL", 4, 32, 18, 0},
    {221, "IQ3_S_R4", "IQ3_S", 4, 256, 110, 0},
    {222, "IQ2_S_R4", "IQ2_S", 4, 256, 82, 0},
    {223, "IQ4_XS_R8", "IQ4_XS", 8, 256, 136, 0},
    {233, "Q6_0_R4", "Q6_0", 4, 32, 26, 0},
    {335, "IQ2_BN_R4", "IQ2_BN", 4, 64, 16, 4},
    {337, "IQ2_K_R4", "IQ2_K", 4, 256, 76, 0},
    {338, "IQ3_K_R4", "IQ3_K", 4, 256, 110, 0},
    {339, "IQ4_K_R4", "IQ4_K", 4, 256, 144, 0},
    {340, "IQ5_K_R4", "IQ5_K", 4, 256, 176, 0},
    {344, "IQ4_KS_R4", "IQ4_KS", 4, 256, 136, 4},
    {352, "IQ5_KS_R4", "IQ5_KS", 4, 256, 168, 4},
    {353, "MXFP4_R8", "MXFP4", 8, 32, 17, 0},
    {219, "IQ1_S_R4", "IQ1_S_R1", 4, 32, 6, 2, "IQ1_S"},
    {229, "IQ1_M_R4", "IQ1_M_R1", 4, 32, 7, 2, "IQ1_M"},
};

constexpr const char* kOtherRows =
    "its rows have other headers or other values than those of the type it is named after";
constexpr NotInterleaved kOthers[] = {
    {230, "BF16_R16", "it is for processors with AVX512-BF16"},
    {397, "Q8_K_R16", kOtherRows},
    {398, "Q8_KV_R8", kOtherRows},
    {399, "Q8_K_R8", kOtherRows},
};

}  // namespace

TypeFamily ik_type_family() {
  return {"ik", "ik_llama.cpp", "ik", kModuleTypes, kInterleaved, kOthers, ik_interleaved_layout};
}

}  // namespace ggufmill
