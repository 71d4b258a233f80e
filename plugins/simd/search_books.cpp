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

template <class Codec, template <class, template <class, BookSums> class> class Points>
bool search_book(const float* x, const float* weights, std::uint32_t effort, typename Codec::Block& block) {
  using Book = typename Codec::Book;
  const auto search = effort == reference::kQuickEffort
                          ? reference::BookSearch<Book, Points<Book, AllLines>, true>::search
                          : reference::BookSearch<Book, Points<Book, LikelyLines>, false>::search;
  return search(x, weights, effort, block);
}

template <class Codec>
std::int32_t search_plain(const ggufmill_call* call) {
  return reference::search_rows<Codec, search_book<Codec, PlainPoints>>(call);
}

template <class Codec, class Encoder>
std::int32_t search_paired(const ggufmill_call* call) {
  return SearchBeside<Codec, Encoder, search_book<Codec, PairedPoints>>(*call).run();
}

template <class Codec, class Encoder>
std::int32_t search_moved(const ggufmill_call* call) {
  return SearchBeside<Codec, Encoder, search_book<Codec, MovedPoints>>(*call).run();
}

}  // namespace

std::int32_t search_iq3_s(const ggufmill_call* call) { return search_plain<reference::SearchedIq3S>(call); }
std::int32_t search_iq2_s(const ggufmill_call* call) { return search_plain<reference::SearchedIq2S>(call); }
std::int32_t search_iq3_xxs(const ggufmill_call* call) {
  return search_paired<reference::SearchedIq3Xxs, Iq3Xxs>(call);
}
std::int32_t search_iq2_xs(const ggufmill_call* call) { return search_paired<reference::SearchedIq2Xs, Iq2Xs>(call); }
std::int32_t search_iq2_xxs(const ggufmill_call* call) {
  return search_paired<reference::SearchedIq2Xxs, Iq2Xxs>(call);
}
std::int32_t search_iq1_s(const ggufmill_call* call) { return search_moved<reference::SearchedIq1S, Iq1S>(call); }
std::int32_t search_iq1_m(const ggufmill_call* call) { return search_moved<reference::SearchedIq1M, Iq1M>(call); }

}  // namespace ggufmill::simd
