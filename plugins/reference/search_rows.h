#pragma once
// Turns searches of one block into kernels.

#include "plugins/reference/codec.h"
#include "plugins/reference/search_weights.h"

namespace ggufmill::reference {

// Returns false if nothing was found: then the block is encoded by the codec itself.
template <class Codec>
using BlockSearch = bool (*)(const float* x, const float* weights, std::uint32_t effort, typename Codec::Block& block);

// True if a search of an effort also tries the codec's own block, because its reference encoder can find a smaller
// error, and keeps the better one. A codec whose searches do has a `kKeepsReferenceFrom`, the least such effort.
template <class Codec>
constexpr bool keeps_reference([[maybe_unused]] std::uint32_t effort) {
  if constexpr (requires { Codec::kKeepsReferenceFrom; })
    return effort >= Codec::kKeepsReferenceFrom;
  else
    return false;
}

// Importance for an encoder that needs it, even if none is given.
template <class Codec>
const float* importance_for(const float* importance, const float* weights) {
  return importance || Codec::kFlags != GGUFMILL_NEEDS_IMPORTANCE ? importance : weights;
}

template <class Codec>
double error_of_block(const float* x, const float* weights, const typename Codec::Block& block) {
  float y[Codec::kElements];
  Codec::decode(block, y);
  double error = 0;
  for (std::uint32_t i = 0; i < Codec::kElements; ++i) {
    const double off = double{x[i]} - double{y[i]};
    error += double{weights[i]} * off * off;
  }
  return error;
}

template <class Codec, BlockSearch<Codec> kSearch>
int32_t search_rows(const ggufmill_call* call) {
  const ggufmill_call& rows = *call;
  const std::uint64_t blocks_a_row = rows.cols / Codec::kElements;
  for (std::uint64_t row = 0; row < rows.rows; ++row) {
    const float* x = static_cast<const float*>(rows.src) + row * rows.cols;
    auto* block = static_cast<typename Codec::Block*>(rows.dst) + row * blocks_a_row;
    const bool needs_mean = Codec::kGgml.weighted == GgmlWeights::kRootOfRow && rows.importance;
    const SearchRow searched{call->weights, call->effort, needs_mean ? mean_square(x, rows.cols) : 0.0f};
    for (std::uint64_t at = 0; at < rows.cols; at += Codec::kElements, ++block) {
      const float* importance = rows.importance ? rows.importance + at : nullptr;
      float weights[Codec::kElements];
      search_weights(Codec::kGgml, searched, Codec::kElements, x + at, importance, weights);
      const bool found = kSearch(x + at, weights, call->effort, *block);
      if (found && !keeps_reference<Codec>(call->effort)) continue;
      // The block's row is encoded by its codec as a row of one block.
      typename Codec::Block by_codec;
      const int32_t status =
          encode_row<Codec>(x + at, Codec::kElements, importance_for<Codec>(importance, weights), &by_codec);
      if (found && (status != GGUFMILL_OK || !(error_of_block<Codec>(x + at, weights, by_codec) <
                                               error_of_block<Codec>(x + at, weights, *block))))
        continue;
      if (status != GGUFMILL_OK) return status;
      *block = by_codec;
    }
  }
  return GGUFMILL_OK;
}

}  // namespace ggufmill::reference
