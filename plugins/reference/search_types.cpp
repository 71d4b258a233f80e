// The search kernels: a block after the other.

#include "plugins/reference/search_types.h"

#include "plugins/reference/search_book.h"
#include "plugins/reference/search_codecs.h"
#include "plugins/reference/search_fp4.h"
#include "plugins/reference/search_rows.h"

namespace ggufmill::reference {
namespace {

// The searches of each kind of type; false if the block is to be encoded by the codec itself, because nothing was
// found.

template <class Codec>
bool find_codes(const float* x, const float* weights, std::uint32_t effort, AffineCodes& codes) {
  return search_affine(Codec::kFormat, x, weights, effort, codes);
}

template <class Codec>
bool find_codes(const float* x, const float* weights, std::uint32_t effort, ScaleCodes& codes) {
  constexpr bool kIsAlone = Codec::kElements == 32;
  const auto search = kIsAlone ? search_one_scale : search_scales;
  return search(Codec::kFormat, x, weights, effort, codes);
}

template <class Codec>
bool find_codes(const float* x, const float* weights, std::uint32_t effort, LineCodes& codes) {
  return search_line(Codec::kLimit, x, weights, effort, codes);
}

template <class Codec, class Codes>
bool search_block(const float* x, const float* weights, std::uint32_t effort, typename Codec::Block& block) {
  Codes codes;
  if (!find_codes<Codec>(x, weights, effort, codes)) return false;
  Codec::put(codes, block);
  return true;
}

template <class Codec, template <class> class Points>
bool search_book(const float* x, const float* weights, std::uint32_t effort, typename Codec::Block& block) {
  using Book = typename Codec::Book;
  const auto search = effort == kQuickEffort ? BookSearch<Book, Points<Book>, true>::search
                                             : BookSearch<Book, Points<Book>, false>::search;
  return search(x, weights, effort, block);
}

template <class Codec, class Codes>
constexpr ggufmill_search_kernel search_for() {
  return search_of<Codec, search_block<Codec, Codes>>();
}

}  // namespace

constinit const std::array<ggufmill_search_kernel, kSearchCount> kSearches = {
    search_for<SearchedQ4_0, ScaleCodes>(),
    search_for<SearchedQ4_1, LineCodes>(),
    search_for<SearchedQ5_0, ScaleCodes>(),
    search_for<SearchedQ5_1, LineCodes>(),
    search_for<SearchedQ8_0, ScaleCodes>(),
    search_for<SearchedQ2_K, AffineCodes>(),
    search_for<SearchedQ3_K, ScaleCodes>(),
    search_for<SearchedQ4_K, AffineCodes>(),
    search_for<SearchedQ5_K, AffineCodes>(),
    search_for<SearchedQ6_K, ScaleCodes>(),
    search_for<SearchedIq4Nl, ScaleCodes>(),
    search_for<SearchedIq4Xs, ScaleCodes>(),
    search_of<SearchedIq3S, search_book<SearchedIq3S, AllPoints>>(),
    search_of<SearchedIq2S, search_book<SearchedIq2S, AllPoints>>(),
    search_of<SearchedIq3Xxs, search_book<SearchedIq3Xxs, EvenPoints>>(),
    search_of<SearchedIq2Xs, search_book<SearchedIq2Xs, EvenPoints>>(),
    search_of<SearchedIq2Xxs, search_book<SearchedIq2Xxs, EvenPoints>>(),
    search_of<SearchedIq1S, search_book<SearchedIq1S, ShiftedPoints>>(),
    search_of<SearchedIq1M, search_book<SearchedIq1M, ShiftedPoints>>(),
    search_of<SearchedMxfp4, search_mxfp4>(),
    search_of<SearchedNvfp4, search_nvfp4>()};

}  // namespace ggufmill::reference
