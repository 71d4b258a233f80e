// Decoders of IQ3_XXS and IQ3_S.

#include "plugins/simd/iq3_types.h"
#include "plugins/simd/lattice_decode.h"

namespace ggufmill::simd {
namespace {

using reference::Iq3SFormat;
using reference::Iq3XxsFormat;

void set_fields(const Iq3XxsFormat::Block& block, const LatticeFields<Iq3XxsFormat>::Book& book,
                LatticeFields<Iq3XxsFormat>& fields) {
  const hn::RepartitionToWide<decltype(kWords)> wide{};
  const hn::Half<decltype(kWords)> half{};
  for (int i = 0; i < 64; i += kShortLanes) fields.points.set(book, i, load_as_shorts(block.qs + i));
  set_packed_signs(
      [&](int i) {
        const auto bytes = hn::LoadU(hn::Half<decltype(kWideBytes)>(), block.words + 4 * i);
        return hn::PromoteTo(wide, hn::BitCast(half, bytes));
      },
      fields);
  fields.scales.set([&](int i) {  // same as Iq3XxsFormat::scale
    const Ints stored = as_ints(hn::ShiftRight<28>(load_eight_words(block.words, i)));
    return load_half(block.d) * (floats(0.5f) + to_floats(stored)) * floats(0.5f);
  });
}

void set_fields(const Iq3SFormat::Block& block, const LatticeFields<Iq3SFormat>::Book& book,
                LatticeFields<Iq3SFormat>& fields) {
  each_index<1, 64>(block.qs, block.qh, [&](int i, Shorts indices) { fields.points.set(book, i, indices); });
  for (int i = 0; i < 32; i += kShortLanes) fields.signs.set(i, load_as_shorts(block.signs + i));
  fields.scales.set([&](int i) {  // same as Iq3SFormat::scale
    const Ints stored = load_nibbles(block.scales, i, 8);
    return load_half(block.d) * to_floats(ints(1) + stored + stored);
  });
}

constexpr auto kSetFields = [](const auto& block, const auto& book, auto& fields) { set_fields(block, book, fields); };

}  // namespace

template <>
void Iq3Xxs::decode(const Block* block, std::uint64_t count, float* x) {
  decode_lattice<Iq3XxsFormat>(block, count, x, kSetFields);
}

template <>
void Iq3S::decode(const Block* block, std::uint64_t count, float* x) {
  decode_lattice<Iq3SFormat>(block, count, x, kSetFields);
}

}  // namespace ggufmill::simd
