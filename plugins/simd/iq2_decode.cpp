// Decoders of IQ2_XXS, IQ2_XS and IQ2_S.

#include "plugins/simd/iq2_types.h"
#include "plugins/simd/lattice_decode.h"

namespace ggufmill::simd {
namespace {

using reference::Iq2SFormat;
using reference::Iq2XsFormat;
using reference::Iq2XxsFormat;

constexpr int kStep = static_cast<int>(kLanes);

// Same as Iq2XxsFormat::scale.
Floats scales_of(const reference::StoredHalf& d, Ints stored) {
  return load_half(d) * (floats(0.5f) + to_floats(stored)) * floats(0.25f);
}

void set_fields(const Iq2XxsFormat::Block& block, const LatticeFields<Iq2XxsFormat>::Book& book,
                LatticeFields<Iq2XxsFormat>& fields) {
  const hn::RepartitionToWide<decltype(kWords)> wide{};
  alignas(64) static constexpr std::uint8_t kIndexBytes[64] = {
      0,  0x80, 1,  0x80, 2, 0x80, 3,  0x80, 8,  0x80, 9, 0x80, 10, 0x80, 11, 0x80, 0,  0x80, 1,  0x80, 2, 0x80,
      3,  0x80, 8,  0x80, 9, 0x80, 10, 0x80, 11, 0x80, 0, 0x80, 1,  0x80, 2,  0x80, 3,  0x80, 8,  0x80, 9, 0x80,
      10, 0x80, 11, 0x80, 0, 0x80, 1,  0x80, 2,  0x80, 3, 0x80, 8,  0x80, 9,  0x80, 10, 0x80, 11, 0x80};
  for (int i = 0; i < 64; i += 4 * kStep) {
    const auto bytes = hn::TableLookupBytesOr0(hn::LoadU(kWideBytes, block.qs + i), hn::Load(kWideBytes, kIndexBytes));
    fields.points.set(book, i / 2, hn::BitCast(kShorts, bytes));
  }
  set_packed_signs(
      [&](int i) { return hn::ShiftRight<32>(hn::BitCast(wide, hn::LoadU(kWideBytes, block.qs + 8 * i))); }, fields);
  fields.scales.set([&](int i) {
    const auto pairs = [&](int first) { return hn::BitCast(kWords, hn::LoadU(kWideBytes, block.qs + 8 * first)); };
    const Words odd = hn::ConcatOdd(kWords, pairs(kLanes == 16 ? i : i + kStep / 2), pairs(i));
    return scales_of(block.d, as_ints(hn::ShiftRight<28>(odd)));
  });
}

void set_fields(const Iq2XsFormat::Block& block, const LatticeFields<Iq2XsFormat>::Book& book,
                LatticeFields<Iq2XsFormat>& fields) {
  for (int i = 0; i < 32; i += kShortLanes) {
    const Shorts both = hn::BitCast(kShorts, hn::LoadU(kWideBytes, block.qs + 2 * i));
    fields.points.set(book, i, both & shorts(511));
    fields.signs.set(i, hn::ShiftRight<9>(both));
  }
  fields.scales.set([&](int i) { return scales_of(block.d, load_nibbles(block.scales, i, 16)); });
}

void set_fields(const Iq2SFormat::Block& block, const LatticeFields<Iq2SFormat>::Book& book,
                LatticeFields<Iq2SFormat>& fields) {
  each_index<2, 32>(block.qs, block.qh, [&](int i, Shorts indices) { fields.points.set(book, i, indices); });
  for (int i = 0; i < 32; i += kShortLanes) fields.signs.set(i, load_as_shorts(block.signs + i));
  fields.scales.set([&](int i) { return scales_of(block.d, load_nibbles(block.scales, i, 16)); });
}

constexpr auto kSetFields = [](const auto& block, const auto& book, auto& fields) { set_fields(block, book, fields); };

}  // namespace

template <>
void Iq2Xxs::decode(const Block* block, std::uint64_t count, float* x) {
  decode_lattice<Iq2XxsFormat>(block, count, x, kSetFields);
}

template <>
void Iq2Xs::decode(const Block* block, std::uint64_t count, float* x) {
  decode_lattice<Iq2XsFormat>(block, count, x, kSetFields);
}

template <>
void Iq2S::decode(const Block* block, std::uint64_t count, float* x) {
  decode_lattice<Iq2SFormat>(block, count, x, kSetFields);
}

}  // namespace ggufmill::simd
