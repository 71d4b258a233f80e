#pragma once
// Compensation: levels are chosen so that the errors of a row cancel.
//
// A search makes the error of each value small. What counts is the error of the products of a row with the inputs of
// its layer, the sum over columns i and j of e_i C_ij e_j, where C is the covariance of the inputs. Importance is its
// diagonal. The correlations are estimated from the rows themselves: columns that are correlated over many rows of a
// matrix mostly have correlated inputs, because training adds products with the inputs to the weights. With the
// importance w (1 without it) and the values x of up to 256 rows of one matrix, C is estimated as
//
//   C_ij = (1 - s) w_i [i = j] + s r_i r_j sum over rows(x_i x_j),   r_i = sqrt(w_i / sum over rows(x_i x_i)),
//
// so that C_ii = w_i. Correlations of few rows are noisy, so s shrinks them as Ledoit and Wolf do (J. Multivariate
// Analysis 88, 2004): it is kLikeness times the part of the squared correlations that exceeds those of independent
// numbers. Then, one column after the other, each value gets the level that makes this sum least, given the current
// errors of all other columns. Scales remain as they are. The rows of an embedding, which are not multiplied by inputs,
// are treated in the same way; that was measured to do no harm.
//
// Coordinate descent on the error of the layer's output is that of GPTQ (Frantar and others, arXiv 2210.17323) and of
// QuIP (Chee and others, arXiv 2307.13304), with a covariance of measured inputs. What the correlations of trained
// weights show is also the subject of Radhakrishnan and others, arXiv 2212.13881.
//
// The arithmetic is in F32 without fused operations, rows are independent of each other, and sums are in the order of
// compensate.cpp, so the bytes do not depend on the instruction set.

#include <cstdint>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill::reference {

inline constexpr int kRowsTogether = GGUFMILL_ROWS_TOGETHER;

// Functions that read and replace levels of a type. The codecs of types that are compensated have, in addition to the
// members that codec.h lists:
//
// clang-format off
//     static constexpr int kGroup;      // elements with the same scale, at least 16
//     static constexpr int kMaxLevel;  // levels are kMinLevel, or 0 if that is not present, to kMaxLevel
//     static constexpr bool kHasTable;  // present if levels are indices in kIq4Values
//     static void levels(const Block& block, std::uint8_t* levels);          // of all elements
//     static void put_levels(const std::uint8_t* levels, Block& block);      // replaces levels and nothing else
//     static void lines(const Block& block, float* scales, float* offsets);  // one of each for a group
// clang-format on
//
// The value of a level is scale * level + offset, or scale * kIq4Values[level] + offset.
struct LevelAccess {
  std::uint32_t elements, block_bytes;
  int group;
  int least, most;
  bool is_table;
  void (*levels)(const void* block, std::uint8_t* levels);
  void (*put_levels)(const std::uint8_t* levels, void* block);
  void (*lines)(const void* block, float* scales, float* offsets);
};

// Compensates the rows of `call`, which are encoded at `call.dst`: rows 0 to 255 together, then 256 to 511, and so on.
// `call.importance` may be null. Returns GGUFMILL_OK, or GGUFMILL_NO_MEMORY if there is no memory for about 0.5 MB of
// intermediate results.
std::int32_t compensate(const LevelAccess& type, const ggufmill_call& call);

template <class Codec>
concept HasLevels = requires {
  Codec::kMaxLevel;
};

template <class Codec>
concept HasTable = requires {
  Codec::kHasTable;
};

template <class Codec>
concept HasLeastLevel = requires {
  Codec::kMinLevel;
};

template <class Codec>
constexpr LevelAccess level_access() {
  using Block = typename Codec::Block;
  LevelAccess access{};
  access.elements = Codec::kElements;
  access.block_bytes = sizeof(Block);
  access.group = Codec::kGroup;
  if constexpr (HasLeastLevel<Codec>) access.least = Codec::kMinLevel;
  access.most = Codec::kMaxLevel;
  access.is_table = HasTable<Codec>;
  access.levels = [](const void* block, std::uint8_t* levels) {
    Codec::levels(*static_cast<const Block*>(block), levels);
  };
  access.put_levels = [](const std::uint8_t* levels, void* block) {
    Codec::put_levels(levels, *static_cast<Block*>(block));
  };
  access.lines = [](const void* block, float* scales, float* offsets) {
    Codec::lines(*static_cast<const Block*>(block), scales, offsets);
  };
  return access;
}

// Completes a search, which returned `status`: its rows are compensated if the call asks for it and the type has
// levels. `Codec` is one of search_codecs.h.
template <class Codec>
std::int32_t after_search(const ggufmill_call& call, std::int32_t status) {
  if constexpr (HasLevels<Codec>) {
    if (status == GGUFMILL_OK && call.compensate != 0) return compensate(level_access<Codec>(), call);
  }
  return status;
}

}  // namespace ggufmill::reference
