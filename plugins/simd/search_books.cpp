// The searches of types with a code book.

#include "plugins/reference/search_rows.h"
#include "plugins/simd/iq1_types.h"
#include "plugins/simd/iq2_types.h"
#include "plugins/simd/iq3_types.h"
#include "plugins/simd/search_beside.h"
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
bool search_even_block(const float* x, const float* weights, std::uint32_t effort, typename Codec::Block& block) {
  using Book = typename Codec::Book;
  return reference::BookSearch<Book, LikelyEvenPoints<Book>>::search(x, weights, effort, block);
}

template <class Codec>
bool search_shifted_block(const float* x, const float* weights, std::uint32_t effort, typename Codec::Block& block) {
  using Book = typename Codec::Book;
  return reference::BookSearch<Book, LikelyShiftedPoints<Book>>::search(x, weights, effort, block);
}

template <class Codec>
std::int32_t search_blocks(const ggufmill_search_call* call) {
  return reference::search_rows<Codec, search_block<Codec>>(call);
}

template <class Codec, class Encoder>
std::int32_t search_even_blocks(const ggufmill_search_call* call) {
  return SearchBeside<Codec, Encoder, search_even_block<Codec>>(*call).run();
}

template <class Codec, class Encoder>
std::int32_t search_shifted_blocks(const ggufmill_search_call* call) {
  return SearchBeside<Codec, Encoder, search_shifted_block<Codec>>(*call).run();
}

}  // namespace

std::int32_t search_iq3_s(const ggufmill_search_call* call) { return search_blocks<reference::SearchedIq3S>(call); }
std::int32_t search_iq2_s(const ggufmill_search_call* call) { return search_blocks<reference::SearchedIq2S>(call); }
std::int32_t search_iq3_xxs(const ggufmill_search_call* call) {
  return search_even_blocks<reference::SearchedIq3Xxs, Iq3Xxs>(call);
}
std::int32_t search_iq2_xs(const ggufmill_search_call* call) {
  return search_even_blocks<reference::SearchedIq2Xs, Iq2Xs>(call);
}
std::int32_t search_iq2_xxs(const ggufmill_search_call* call) {
  return search_even_blocks<reference::SearchedIq2Xxs, Iq2Xxs>(call);
}
std::int32_t search_iq1_s(const ggufmill_search_call* call) {
  return search_shifted_blocks<reference::SearchedIq1S, Iq1S>(call);
}
std::int32_t search_iq1_m(const ggufmill_search_call* call) {
  return search_shifted_blocks<reference::SearchedIq1M, Iq1M>(call);
}

}  // namespace ggufmill::simd
