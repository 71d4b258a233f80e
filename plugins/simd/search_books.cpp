// The searches of types with a code book.

#include "plugins/reference/search_rows.h"
#include "plugins/simd/search_book.h"
#include "plugins/simd/search_types.h"

namespace ggufmill::simd {
namespace {

template <class Codec>
bool search_block(const float* x, const float* weights, std::uint32_t effort, typename Codec::Block& block) {
  using Book = typename Codec::Book;
  return reference::BookSearch<Book, LikelyPoints<Book>>::search(x, weights, effort, block);
}

template <class Codec>
std::int32_t search_blocks(const ggufmill_search_call* call) {
  return reference::search_rows<Codec, search_block<Codec>>(call);
}

}  // namespace

std::int32_t search_iq3_s(const ggufmill_search_call* call) { return search_blocks<reference::SearchedIq3S>(call); }
std::int32_t search_iq2_s(const ggufmill_search_call* call) { return search_blocks<reference::SearchedIq2S>(call); }

}  // namespace ggufmill::simd
