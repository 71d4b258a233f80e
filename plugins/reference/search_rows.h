#pragma once
// Turns searches of one block into kernels.

#include "plugins/reference/codec.h"
#include "plugins/reference/search_weights.h"

namespace ggufmill::reference {

// Returns false if nothing was found: then the block is encoded by the codec itself.
template <class Codec>
using BlockSearch = bool (*)(const float* x, const float* weights, std::uint32_t effort, typename Codec::Block& block);

template <class Codec, BlockSearch<Codec> kSearch>
int32_t search_rows(const ggufmill_search_call* call) {
  const ggufmill_call& rows = call->rows;
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
      if (kSearch(x + at, weights, call->effort, *block)) continue;
      // The block's row is encoded by its codec as a row of one block.
      const int32_t status = encode_row<Codec>(x + at, Codec::kElements, importance, block);
      if (status != GGUFMILL_OK) return status;
    }
  }
  return GGUFMILL_OK;
}

template <class Codec, BlockSearch<Codec> kSearch>
constexpr ggufmill_search_kernel search_of() {
  return {Codec::kTypeId, 0, search_rows<Codec, kSearch>};
}

}  // namespace ggufmill::reference
