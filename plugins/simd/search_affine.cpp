// The searches of types with scales and minimums.

#include "plugins/simd/search_affine.h"

#include "plugins/reference/compensate.h"
#include "plugins/simd/search_types.h"

namespace ggufmill::simd {
namespace {

template <class Codec>
std::int32_t search_blocks(const ggufmill_call* call) {
  return reference::after_search<Codec>(*call,
                                        BlockStream<Codec, reference::AffineCodes>(*call, search_affine<Codec>).run());
}

template <class Codec>
std::int32_t search_lines(const ggufmill_call* call) {
  return reference::after_search<Codec>(*call,
                                        BlockStream<Codec, reference::LineCodes>(*call, search_line<Codec>).run());
}

}  // namespace

std::int32_t search_q4_1(const ggufmill_call* call) { return search_lines<reference::SearchedQ4_1>(call); }
std::int32_t search_q5_1(const ggufmill_call* call) { return search_lines<reference::SearchedQ5_1>(call); }
std::int32_t search_q2_k(const ggufmill_call* call) { return search_blocks<reference::SearchedQ2_K>(call); }
std::int32_t search_q4_k(const ggufmill_call* call) { return search_blocks<reference::SearchedQ4_K>(call); }
std::int32_t search_q5_k(const ggufmill_call* call) { return search_blocks<reference::SearchedQ5_K>(call); }

}  // namespace ggufmill::simd
