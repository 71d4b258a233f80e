#pragma once
// Points: the whole numbers that the values of an encoded row are made from, value = scale * point + offset, where the
// elements of a group have the same scale and offset. A type takes its points from a range, from a table, or from a
// code book, in which those of some neighbouring columns are listed together, without their signs.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "plugins/reference/compensate.h"
#include "plugins/reference/iq_codec.h"
#include "plugins/reference/iq_sub_block.h"

namespace ggufmill::reference {

// Magnitudes of the points of `dims` columns, in ascending order of their codes (codebooks.h).
struct PointBook {
  int dims;
  int count;
  const std::uint8_t* levels;      // `dims` of each entry
  const std::uint8_t* magnitudes;  // of each level
  const std::uint8_t* differs;     // the last column in which an entry differs from the one before it
  bool has_even_signs;             // of 8 columns, an even number is negative

  // Returns the number of columns whose points depend on each other.
  std::uint64_t together() const { return has_even_signs ? 8 : static_cast<std::uint64_t>(dims); }
};

// Functions that read and replace the points of a type.
struct PointAccess {
  std::uint32_t elements, block_bytes;
  int group;                                             // elements with the same scale, at least 16
  float least, most;                                     // of a range
  const std::int8_t* table;                              // 16 points in ascending order, or null
  const PointBook* book;                                 // or null
  void (*points)(const void* block, float* points);      // of all elements
  void (*put_points)(const float* points, void* block);  // replaces them and nothing else
  void (*lines)(const void* block, float* scales, float* offsets);
};

// Codecs with levels (compensate.h). A codec whose levels are not indices in kIq4Values has a table of its own:
//
//     static constexpr std::int8_t kTable[16];  // in ascending order
template <class Codec>
concept HasOwnTable = requires {
  Codec::kTable;
};

template <class Codec>
constexpr const std::int8_t* table_of() {
  if constexpr (HasOwnTable<Codec>) return Codec::kTable;
  if constexpr (HasTable<Codec>) return kIq4Values;
  return nullptr;
}

template <class Codec>
float point_of(std::uint8_t level) {
  if constexpr (HasOwnTable<Codec> || HasTable<Codec>) return static_cast<float>(table_of<Codec>()[level]);
  return static_cast<float>(level);
}

// Of levels with the same point, the first.
template <class Codec>
std::uint8_t level_of(float point) {
  if constexpr (!HasOwnTable<Codec> && !HasTable<Codec>) return static_cast<std::uint8_t>(point);
  std::uint8_t level = 0;
  while (point_of<Codec>(level) < point) ++level;
  return level;
}

template <class Codec>
void points_of_levels(const void* block, float* points) {
  std::uint8_t levels[Codec::kElements];
  Codec::levels(*static_cast<const typename Codec::Block*>(block), levels);
  for (std::uint32_t i = 0; i < Codec::kElements; ++i) points[i] = point_of<Codec>(levels[i]);
}

template <class Codec>
void put_points_as_levels(const float* points, void* block) {
  std::uint8_t levels[Codec::kElements];
  for (std::uint32_t i = 0; i < Codec::kElements; ++i) levels[i] = level_of<Codec>(points[i]);
  Codec::put_levels(levels, *static_cast<typename Codec::Block*>(block));
}

template <class Codec>
constexpr PointAccess points_in_levels() {
  const LevelAccess levels = level_access<Codec>();
  return {levels.elements,
          levels.block_bytes,
          levels.group,
          static_cast<float>(levels.least),
          static_cast<float>(levels.most),
          table_of<Codec>(),
          nullptr,
          points_of_levels<Codec>,
          put_points_as_levels<Codec>,
          levels.lines};
}

// Formats with a code book (iq_format.h).
template <class Format>
struct BookPoints {
  using Block = typename Format::Block;
  using Space = typename std::remove_cvref_t<decltype(Format::lattice())>::SpaceType;
  static constexpr int kDims = Space::kDims, kElements = 256;
  static constexpr int kCount = static_cast<int>(std::tuple_size_v<std::remove_cvref_t<decltype(Format::kBook)>>);

  static void points(const void* block, float* points) {
    const Block& from = *static_cast<const Block*>(block);
    for (int i = 0; i < kElements; ++i) {
      const unsigned stored = Format::get_signs(from, i / 8);
      const unsigned signs = Format::kEvenSigns ? expand_even_signs(stored) : stored;
      const float magnitude = Format::kMagnitudes[Format::kBook[Format::get_index(from, i / kDims)][i % kDims]];
      points[i] = signs >> (i % 8) & 1 ? -magnitude : magnitude;
    }
  }

  static void put_points(const float* points, void* block) {
    Block& into = *static_cast<Block*>(block);
    const Block before = into;
    into = {};
    into.d = before.d;
    for (int sub = 0; sub < kElements / Format::kSubBlock; ++sub)
      Format::put_scale(into, sub, Format::get_scale(before, sub));
    for (int group = 0; group < kElements / kDims; ++group) {
      std::uint8_t levels[kDims];
      for (int i = 0; i < kDims; ++i) levels[i] = level_of(points[group * kDims + i]);
      Format::put_index(into, group, static_cast<unsigned>(Format::lattice().index[Space::code_of(levels)]));
    }
    for (int eight = 0; eight < kElements / 8; ++eight) {
      unsigned signs = 0;
      for (int i = 0; i < (Format::kEvenSigns ? 7 : 8); ++i) signs |= (points[eight * 8 + i] < 0 ? 1u : 0u) << i;
      Format::put_signs(into, eight, signs);
    }
  }

  static void lines(const void* block, float* scales, float* offsets) {
    const Block& from = *static_cast<const Block*>(block);
    const float d = from.d.load();
    for (int sub = 0; sub < kElements / Format::kSubBlock; ++sub) {
      scales[sub] = Format::scale(d, Format::get_scale(from, sub));
      offsets[sub] = 0;
    }
  }

  static constexpr std::array<std::uint8_t, kCount> differences() {
    std::array<std::uint8_t, kCount> differs{};
    differs[0] = kDims - 1;
    for (int entry = 1; entry < kCount; ++entry)
      for (int i = 0; i < kDims; ++i)
        if (Format::kBook[entry][i] != Format::kBook[entry - 1][i]) differs[entry] = static_cast<std::uint8_t>(i);
    return differs;
  }

  // Built on the first call. Thread-safe.
  static const PointBook& book() {
    static const auto differs = differences();
    static const PointBook book{
        kDims, kCount, Format::kBook[0].data(), Format::kMagnitudes, differs.data(), Format::kEvenSigns};
    return book;
  }

  static PointAccess access() {
    return {kElements, sizeof(Block), Format::kSubBlock, 0, 0, nullptr, &book(), points, put_points, lines};
  }

 private:
  static std::uint8_t level_of(float point) {
    std::uint8_t level = 0;
    while (Format::kMagnitudes[level] < (point < 0 ? -point : point)) ++level;
    return level;
  }
};

}  // namespace ggufmill::reference
