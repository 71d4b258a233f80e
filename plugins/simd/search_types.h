#pragma once
// The search kernels, with the bytes of those of plugins/reference/search_types.h.

#include <array>

#include "plugins/reference/search_codecs.h"

namespace ggufmill::simd {

// With a block per lane.
std::int32_t search_q4_0(const ggufmill_search_call* call);
std::int32_t search_q4_1(const ggufmill_search_call* call);
std::int32_t search_q5_0(const ggufmill_search_call* call);
std::int32_t search_q5_1(const ggufmill_search_call* call);
std::int32_t search_q8_0(const ggufmill_search_call* call);
std::int32_t search_q2_k(const ggufmill_search_call* call);
std::int32_t search_q3_k(const ggufmill_search_call* call);
std::int32_t search_q4_k(const ggufmill_search_call* call);
std::int32_t search_q5_k(const ggufmill_search_call* call);
std::int32_t search_q6_k(const ggufmill_search_call* call);
std::int32_t search_iq4_nl(const ggufmill_search_call* call);
std::int32_t search_iq4_xs(const ggufmill_search_call* call);
std::int32_t search_mxfp4(const ggufmill_search_call* call);
std::int32_t search_nvfp4(const ggufmill_search_call* call);
// With a point of the code book per lane.
std::int32_t search_iq3_s(const ggufmill_search_call* call);
std::int32_t search_iq2_s(const ggufmill_search_call* call);
std::int32_t search_iq3_xxs(const ggufmill_search_call* call);
std::int32_t search_iq2_xs(const ggufmill_search_call* call);
std::int32_t search_iq2_xxs(const ggufmill_search_call* call);
std::int32_t search_iq1_s(const ggufmill_search_call* call);
std::int32_t search_iq1_m(const ggufmill_search_call* call);

inline constexpr std::array kSearches = {
    ggufmill_search_kernel{reference::Q4_0::kTypeId, 0, search_q4_0},
    ggufmill_search_kernel{reference::Q4_1::kTypeId, 0, search_q4_1},
    ggufmill_search_kernel{reference::Q5_0::kTypeId, 0, search_q5_0},
    ggufmill_search_kernel{reference::Q5_1::kTypeId, 0, search_q5_1},
    ggufmill_search_kernel{reference::Q8_0::kTypeId, 0, search_q8_0},
    ggufmill_search_kernel{reference::Q2_K::kTypeId, 0, search_q2_k},
    ggufmill_search_kernel{reference::Q3_K::kTypeId, 0, search_q3_k},
    ggufmill_search_kernel{reference::Q4_K::kTypeId, 0, search_q4_k},
    ggufmill_search_kernel{reference::Q5_K::kTypeId, 0, search_q5_k},
    ggufmill_search_kernel{reference::Q6_K::kTypeId, 0, search_q6_k},
    ggufmill_search_kernel{reference::Iq4Nl::kTypeId, 0, search_iq4_nl},
    ggufmill_search_kernel{reference::Iq4Xs::kTypeId, 0, search_iq4_xs},
    ggufmill_search_kernel{reference::SearchedIq3S::kTypeId, 0, search_iq3_s},
    ggufmill_search_kernel{reference::SearchedIq2S::kTypeId, 0, search_iq2_s},
    ggufmill_search_kernel{reference::SearchedIq3Xxs::kTypeId, 0, search_iq3_xxs},
    ggufmill_search_kernel{reference::SearchedIq2Xs::kTypeId, 0, search_iq2_xs},
    ggufmill_search_kernel{reference::SearchedIq2Xxs::kTypeId, 0, search_iq2_xxs},
    ggufmill_search_kernel{reference::Iq1S::kTypeId, 0, search_iq1_s},
    ggufmill_search_kernel{reference::Iq1M::kTypeId, 0, search_iq1_m},
    ggufmill_search_kernel{reference::MXFP4::kTypeId, 0, search_mxfp4},
    ggufmill_search_kernel{reference::NVFP4::kTypeId, 0, search_nvfp4},
};

}  // namespace ggufmill::simd
