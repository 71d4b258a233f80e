// The searches of types with scales only.

#include "plugins/simd/search_scales.h"

#include "plugins/reference/compensate.h"
#include "plugins/simd/search_types.h"

namespace ggufmill::simd {
namespace {

template <class Codec>
std::int32_t search_blocks(const ggufmill_call* call) {
  return reference::after_search<Codec>(*call,
                                        BlockStream<Codec, reference::ScaleCodes>(*call, search_scales<Codec>).run());
}

template <class Codec>
std::int32_t search_alone(const ggufmill_call* call) {
  return reference::after_search<Codec>(
      *call, BlockStream<Codec, reference::ScaleCodes>(*call, search_one_scale<Codec>).run());
}

}  // namespace

std::int32_t search_q4_0(const ggufmill_call* call) { return search_alone<reference::SearchedQ4_0>(call); }
std::int32_t search_q5_0(const ggufmill_call* call) { return search_alone<reference::SearchedQ5_0>(call); }
std::int32_t search_q8_0(const ggufmill_call* call) { return search_alone<reference::SearchedQ8_0>(call); }
std::int32_t search_q3_k(const ggufmill_call* call) { return search_blocks<reference::SearchedQ3_K>(call); }
std::int32_t search_q6_k(const ggufmill_call* call) { return search_blocks<reference::SearchedQ6_K>(call); }
std::int32_t search_iq4_nl(const ggufmill_call* call) { return search_alone<reference::SearchedIq4Nl>(call); }
std::int32_t search_iq4_xs(const ggufmill_call* call) { return search_blocks<reference::SearchedIq4Xs>(call); }

}  // namespace ggufmill::simd
