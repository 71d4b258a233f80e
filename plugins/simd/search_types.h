#pragma once
// The search kernels, with the bytes of those of plugins/reference/search_types.h.

#include "plugins/reference/search_codecs.h"

namespace ggufmill::simd {

using reference::SearchRun;

// With a block per lane.
SearchRun search_q4_0, search_q4_1, search_q5_0, search_q5_1, search_q8_0;
SearchRun search_q2_k, search_q3_k, search_q4_k, search_q5_k, search_q6_k;
SearchRun search_iq4_nl, search_iq4_xs, search_mxfp4, search_nvfp4;
// With a point of the code book per lane.
SearchRun search_iq3_s, search_iq2_s, search_iq3_xxs, search_iq2_xs, search_iq2_xxs, search_iq1_s, search_iq1_m;

inline constexpr auto kSearchKernels = reference::search_kernels_of(
    {search_q4_0,    search_q4_1,   search_q5_0,    search_q5_1,   search_q8_0,   search_q2_k,  search_q3_k,
     search_q4_k,    search_q5_k,   search_q6_k,    search_iq4_nl, search_iq4_xs, search_iq3_s, search_iq2_s,
     search_iq3_xxs, search_iq2_xs, search_iq2_xxs, search_iq1_s,  search_iq1_m,  search_mxfp4, search_nvfp4});

}  // namespace ggufmill::simd
