// The search kernels: a block after the other.

#include "plugins/reference/search_types.h"

#include "plugins/reference/compensate.h"
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
int32_t search_codes(const ggufmill_call* call) {
  return after_search<Codec>(*call, search_rows<Codec, search_block<Codec, Codes>>(call));
}

template <class Codec, template <class> class Points>
int32_t search_points(const ggufmill_call* call) {
  return search_rows<Codec, search_book<Codec, Points>>(call);
}

}  // namespace

int32_t search_q4_0(const ggufmill_call* call) { return search_codes<SearchedQ4_0, ScaleCodes>(call); }
int32_t search_q4_1(const ggufmill_call* call) { return search_codes<SearchedQ4_1, LineCodes>(call); }
int32_t search_q5_0(const ggufmill_call* call) { return search_codes<SearchedQ5_0, ScaleCodes>(call); }
int32_t search_q5_1(const ggufmill_call* call) { return search_codes<SearchedQ5_1, LineCodes>(call); }
int32_t search_q8_0(const ggufmill_call* call) { return search_codes<SearchedQ8_0, ScaleCodes>(call); }
int32_t search_q2_k(const ggufmill_call* call) { return search_codes<SearchedQ2_K, AffineCodes>(call); }
int32_t search_q3_k(const ggufmill_call* call) { return search_codes<SearchedQ3_K, ScaleCodes>(call); }
int32_t search_q4_k(const ggufmill_call* call) { return search_codes<SearchedQ4_K, AffineCodes>(call); }
int32_t search_q5_k(const ggufmill_call* call) { return search_codes<SearchedQ5_K, AffineCodes>(call); }
int32_t search_q6_k(const ggufmill_call* call) { return search_codes<SearchedQ6_K, ScaleCodes>(call); }
int32_t search_iq4_nl(const ggufmill_call* call) { return search_codes<SearchedIq4Nl, ScaleCodes>(call); }
int32_t search_iq4_xs(const ggufmill_call* call) { return search_codes<SearchedIq4Xs, ScaleCodes>(call); }
int32_t search_iq3_s(const ggufmill_call* call) { return search_points<SearchedIq3S, AllPoints>(call); }
int32_t search_iq2_s(const ggufmill_call* call) { return search_points<SearchedIq2S, AllPoints>(call); }
int32_t search_iq3_xxs(const ggufmill_call* call) { return search_points<SearchedIq3Xxs, EvenPoints>(call); }
int32_t search_iq2_xs(const ggufmill_call* call) { return search_points<SearchedIq2Xs, EvenPoints>(call); }
int32_t search_iq2_xxs(const ggufmill_call* call) { return search_points<SearchedIq2Xxs, EvenPoints>(call); }
int32_t search_iq1_s(const ggufmill_call* call) { return search_points<SearchedIq1S, ShiftedPoints>(call); }
int32_t search_iq1_m(const ggufmill_call* call) { return search_points<SearchedIq1M, ShiftedPoints>(call); }
int32_t search_mxfp4(const ggufmill_call* call) {
  return search_rows<SearchedMxfp4, ggufmill::reference::search_mxfp4>(call);
}
int32_t search_nvfp4(const ggufmill_call* call) {
  return search_rows<SearchedNvfp4, ggufmill::reference::search_nvfp4>(call);
}

}  // namespace ggufmill::reference
