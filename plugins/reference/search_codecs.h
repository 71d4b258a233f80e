#pragma once
// The types that have a search: for each, its codec, the weights of its reference encoder, the format that the search
// sees, and how what is found is packed.

#include <array>
#include <cstddef>

#include "plugins/reference/compensate.h"
#include "plugins/reference/fp4_types.h"
#include "plugins/reference/iq4_types.h"
#include "plugins/reference/k_types.h"
#include "plugins/reference/lattice_types.h"
#include "plugins/reference/search_affine.h"
#include "plugins/reference/search_iq1.h"
#include "plugins/reference/search_scales.h"
#include "plugins/reference/search_weights.h"
#include "plugins/reference/simple_types.h"

namespace ggufmill::reference {

// Scales and minimums.
template <class Codec>
struct AffineSearched : Codec {
  static void put(const AffineCodes& codes, typename Codec::Block& block) {
    Codec::pack(codes.d, codes.dmin, codes.scales, codes.minimums, codes.levels, block);
  }
};

struct SearchedQ4_K : AffineSearched<Q4_K> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot2, GgmlWeights::kAbove};
  static constexpr AffineFormat kFormat{32, 15, 63, 14.0f, 1.95f, 1.5f};
};

struct SearchedQ5_K : AffineSearched<Q5_K> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot2, GgmlWeights::kAbove};
  static constexpr AffineFormat kFormat{32, 31, 63, 30.0f, 1.95f, 1.5f};
};

struct SearchedQ2_K : AffineSearched<Q2_K> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot, GgmlWeights::kMagnitude};
  static constexpr AffineFormat kFormat{16, 3, 15, 2.1f, 1.85f, 0.75f};
};

// Scales. `kOffset` is what a code of a scale is stored with.
template <class Codec, int kOffset>
struct ScaleSearched : Codec {
  static void put(const ScaleCodes& codes, typename Codec::Block& block) {
    std::uint8_t stored[ScaleCodes::kMaxGroups];
    for (int i = 0; i < ScaleCodes::kMaxGroups; ++i) stored[i] = static_cast<std::uint8_t>(codes.scales[i] + kOffset);
    Codec::pack(codes.d, stored, codes.levels, block);
  }
};

struct SearchedQ3_K : ScaleSearched<Q3_K, 32> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot2, GgmlWeights::kSquare};
  static constexpr ScaleFormat kFormat{16, -4, 3, false, 4, -32, 31, 0.5f};
};

struct SearchedQ6_K : ScaleSearched<Q6_K, 0> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kAsGiven, GgmlWeights::kSquare};
  static constexpr ScaleFormat kFormat{16, -32, 31, false, 32, -128, 127, 0.85f};
};

struct SearchedIq4Xs : ScaleSearched<Iq4Xs, 32> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot2, GgmlWeights::kSquare};
  static constexpr ScaleFormat kFormat{32, 0, 0, true, 120, -32, 31, 0.5f};
};

// One scale.
template <class Codec>
struct OneScaleSearched : Codec {
  static void put(const ScaleCodes& codes, typename Codec::Block& block) { Codec::pack(codes.d, codes.levels, block); }
};

struct SearchedQ4_0 : OneScaleSearched<Q4_0> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRootOfRow, GgmlWeights::kOne};
  static constexpr ScaleFormat kFormat{32, -8, 7, false, 8, 0, 0, 0};
};

struct SearchedQ5_0 : OneScaleSearched<Q5_0> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRootOfRow, GgmlWeights::kOne};
  static constexpr ScaleFormat kFormat{32, -16, 15, false, 16, 0, 0, 0};
};

struct SearchedIq4Nl : OneScaleSearched<Iq4Nl> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot2, GgmlWeights::kSquare};
  static constexpr ScaleFormat kFormat{32, 0, 0, true, 120, 0, 0, 0};
};

// Its levels are signed bytes.
struct SearchedQ8_0 : Q8_0 {
  static constexpr GgmlWeights kGgml{GgmlWeights::kNever, GgmlWeights::kOne};
  static constexpr ScaleFormat kFormat{32, -127, 127, false, 127, 0, 0, 0};
  static void put(const ScaleCodes& codes, Block& block) {
    std::uint8_t levels[kElements];
    for (std::uint32_t i = 0; i < kElements; ++i) levels[i] = static_cast<std::uint8_t>(codes.levels[i] - 127);
    pack(codes.d, levels, block);
  }
};

// A scale and a minimum.
template <class Codec, int kMax>
struct LineSearched : Codec {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRootOfRow, GgmlWeights::kOne};
  static constexpr int kLimit = kMax;
  static void put(const LineCodes& codes, typename Codec::Block& block) {
    Codec::pack(codes.d, codes.m, codes.levels, block);
  }
};
using SearchedQ4_1 = LineSearched<Q4_1, 15>;
using SearchedQ5_1 = LineSearched<Q5_1, 31>;

// A code book.
struct SearchedIq3S : LatticeCodec<Iq3SFormat> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot2, GgmlWeights::kSquare};
  using Book = Iq3SFormat;
};

struct SearchedIq2S : LatticeCodec<Iq2SFormat> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot2, GgmlWeights::kHalfMean};
  using Book = Iq2SFormat;
};

// Code books with an even number of negative values in eight.
struct SearchedIq3Xxs : LatticeCodec<Iq3XxsFormat> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot2, GgmlWeights::kSquare};
  static constexpr std::uint32_t kKeepsReferenceFrom = 2;
  using Book = Iq3XxsFormat;
};

struct SearchedIq2Xs : LatticeCodec<Iq2XsFormat> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot, GgmlWeights::kOne};
  static constexpr std::uint32_t kKeepsReferenceFrom = 2;
  using Book = Iq2XsFormat;
};

struct SearchedIq2Xxs : LatticeCodec<Iq2XxsFormat> {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot, GgmlWeights::kOne};
  static constexpr std::uint32_t kKeepsReferenceFrom = 2;
  using Book = Iq2XxsFormat;
};

// A code book with shifts.
struct SearchedIq1S : Iq1S {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot2, GgmlWeights::kOne};
  static constexpr std::uint32_t kKeepsReferenceFrom = 2;
  using Book = Iq1SBook;
};

struct SearchedIq1M : Iq1M {
  static constexpr GgmlWeights kGgml{GgmlWeights::kRoot2, GgmlWeights::kSquare};
  static constexpr std::uint32_t kKeepsReferenceFrom = 2;
  using Book = Iq1MBook;
};

// 4-bit floats.
struct SearchedMxfp4 : MXFP4 {
  static constexpr GgmlWeights kGgml{GgmlWeights::kNever, GgmlWeights::kOne};
};

struct SearchedNvfp4 : NVFP4 {
  static constexpr GgmlWeights kGgml{GgmlWeights::kNever, GgmlWeights::kOne};
};

// The functions of the searches of a module.
using SearchRun = int32_t(const ggufmill_call* call);
struct SearchRuns {
  SearchRun *q4_0, *q4_1, *q5_0, *q5_1, *q8_0, *q2_k, *q3_k, *q4_k, *q5_k, *q6_k, *iq4_nl, *iq4_xs, *iq3_s, *iq2_s,
      *iq3_xxs, *iq2_xs, *iq2_xxs, *iq1_s, *iq1_m, *mxfp4, *nvfp4;
};

template <class Codec>
constexpr ggufmill_kernel search_kernel_of(SearchRun* run) {
  // A search always uses importance; types that need it get no file without it.
  ggufmill_kernel kernel =
      plain_kernel(GGUFMILL_ENCODE, Codec::kTypeId, Codec::kElements, sizeof(typename Codec::Block), Codec::kName, run);
  kernel.flags = Codec::kFlags == GGUFMILL_NEEDS_IMPORTANCE ? GGUFMILL_NEEDS_IMPORTANCE : GGUFMILL_ACCEPTS_IMPORTANCE;
  if constexpr (HasLevels<Codec>) kernel.flags |= GGUFMILL_COMPENSATES;
  kernel.encoder = "search";
  return kernel;
}

constexpr auto search_kernels_of(const SearchRuns& runs) {
  return std::array{search_kernel_of<SearchedQ4_0>(runs.q4_0),      search_kernel_of<SearchedQ4_1>(runs.q4_1),
                    search_kernel_of<SearchedQ5_0>(runs.q5_0),      search_kernel_of<SearchedQ5_1>(runs.q5_1),
                    search_kernel_of<SearchedQ8_0>(runs.q8_0),      search_kernel_of<SearchedQ2_K>(runs.q2_k),
                    search_kernel_of<SearchedQ3_K>(runs.q3_k),      search_kernel_of<SearchedQ4_K>(runs.q4_k),
                    search_kernel_of<SearchedQ5_K>(runs.q5_k),      search_kernel_of<SearchedQ6_K>(runs.q6_k),
                    search_kernel_of<SearchedIq4Nl>(runs.iq4_nl),   search_kernel_of<SearchedIq4Xs>(runs.iq4_xs),
                    search_kernel_of<SearchedIq3S>(runs.iq3_s),     search_kernel_of<SearchedIq2S>(runs.iq2_s),
                    search_kernel_of<SearchedIq3Xxs>(runs.iq3_xxs), search_kernel_of<SearchedIq2Xs>(runs.iq2_xs),
                    search_kernel_of<SearchedIq2Xxs>(runs.iq2_xxs), search_kernel_of<SearchedIq1S>(runs.iq1_s),
                    search_kernel_of<SearchedIq1M>(runs.iq1_m),     search_kernel_of<SearchedMxfp4>(runs.mxfp4),
                    search_kernel_of<SearchedNvfp4>(runs.nvfp4)};
}

}  // namespace ggufmill::reference
