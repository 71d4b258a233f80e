// The types of ik_llama.cpp, for the program: what it knows of them without the kernel module.
#include "pipeline/core/type_family.h"

#include "plugins/ik/host/interleaved_layouts.h"

namespace ggufmill {
namespace {

// Source of the numbers: ik_llama.cpp, ggml/include/ggml.h and ggml/src/iqk/iqk_quantize.cpp (MIT).
constexpr ModuleType kModuleTypes[] = {
    {133, "Q6_0"},    {134, "IQ1_BN"}, {135, "IQ2_BN"}, {137, "IQ2_K"},  {138, "IQ3_K"},
    {139, "IQ4_K"},   {140, "IQ5_K"},  {141, "IQ6_K"},  {144, "IQ4_KS"}, {145, "IQ2_KS"},
    {146, "IQ4_KSS"}, {151, "Q8_KV"},  {152, "IQ5_KS"}, {153, "IQ2_KT"}, {154, "IQ3_KT"},
    {155, "IQ4_KT"},  {156, "IQ3_KS"}, {157, "IQ2_KL"}, {158, "IQ1_KT"},
};

constexpr InterleavedType kInterleaved[] = {
    {202, "Q4_0_R8", "Q4_0", 8, 32, 18, 0},
    {206, "Q5_0_R4", "Q5_0", 4, 32, 22, 0},
    {208, "Q8_0_R8", "Q8_0", 8, 32, 34, 0},
    {210, "Q2_K_R4", "Q2_K", 4, 256, 84, 0},
    {211, "Q3_K_R4", "Q3_K", 4, 256, 110, 0},
    {212, "Q4_K_R4", "Q4_K", 4, 256, 144, 0},
    {213, "Q5_K_R4", "Q5_K", 4, 256, 176, 0},
    {214, "Q6_K_R4", "Q6_K", 4, 256, 210, 0},
    {216, "IQ2_XXS_R4", "IQ2_XXS", 4, 256, 66, 0},
    {217, "IQ2_XS_R4", "IQ2_XS", 4, 256, 74, 0},
    {218, "IQ3_XXS_R4", "IQ3_XXS", 4, 256, 98, 0},
    {220, "IQ4_NL_R4", "IQ4_NL", 4, 32, 18, 0},
    {221, "IQ3_S_R4", "IQ3_S", 4, 256, 110, 0},
    {222, "IQ2_S_R4", "IQ2_S", 4, 256, 82, 0},
    {223, "IQ4_XS_R8", "IQ4_XS", 8, 256, 136, 0},
    {233, "Q6_0_R4", "Q6_0", 4, 32, 26, 0},
    {335, "IQ2_BN_R4", "IQ2_BN", 4, 64, 16, 4},
    {337, "IQ2_K_R4", "IQ2_K", 4, 256, 76, 0},
    {338, "IQ3_K_R4", "IQ3_K", 4, 256, 110, 0},
    {339, "IQ4_K_R4", "IQ4_K", 4, 256, 144, 0},
    {340, "IQ5_K_R4", "IQ5_K", 4, 256, 176, 0},
    {344, "IQ4_KS_R4", "IQ4_KS", 4, 256, 136, 4},
    {352, "IQ5_KS_R4", "IQ5_KS", 4, 256, 168, 4},
    {353, "MXFP4_R8", "MXFP4", 8, 32, 17, 0},
    {219, "IQ1_S_R4", "IQ1_S_R1", 4, 32, 6, 2, "IQ1_S"},
    {229, "IQ1_M_R4", "IQ1_M_R1", 4, 32, 7, 2, "IQ1_M"},
};

constexpr const char* kOtherRows =
    "its rows have other headers or other values than those of the type it is named after";
constexpr NotInterleaved kOthers[] = {
    {230, "BF16_R16", "it is for processors with AVX512-BF16"},
    {397, "Q8_K_R16", kOtherRows},
    {398, "Q8_KV_R8", kOtherRows},
    {399, "Q8_K_R8", kOtherRows},
};

}  // namespace

TypeFamily ik_type_family() {
  return {"ik", "ik_llama.cpp", "ik", kModuleTypes, kInterleaved, kOthers, ik_interleaved_layout};
}

}  // namespace ggufmill
