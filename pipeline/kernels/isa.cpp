#include "pipeline/kernels/isa.h"

#include <algorithm>
#include <sstream>

namespace ggufmill {
namespace {

// The x86-64 levels are those of the System V psABI (x86-64-ABI 1.0, table 3.1), in the words of /proc/cpuinfo: SSE3 is
// "pni", LZCNT is "abm". Each lists the levels below it, so that one look tells all.
#define GGUFMILL_V2 "cx16 lahf_lm popcnt pni ssse3 sse4_1 sse4_2"
#define GGUFMILL_V3 GGUFMILL_V2 " avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
#define GGUFMILL_V4 GGUFMILL_V3 " avx512f avx512bw avx512cd avx512dq avx512vl"

constexpr Isa kIsas[] = {
    {"reference", 0, ""},          {"x86-64-v2", 1, GGUFMILL_V2}, {"x86-64-v3", 2, GGUFMILL_V3},
    {"x86-64-v4", 3, GGUFMILL_V4}, {"arm64-neon", 1, "asimd"},
};

#undef GGUFMILL_V2
#undef GGUFMILL_V3
#undef GGUFMILL_V4

}  // namespace

std::span<const Isa> all_isas() { return kIsas; }

const Isa* find_isa(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kIsas), std::end(kIsas), [&](const Isa& isa) { return isa.name == name; });
  return found == std::end(kIsas) ? nullptr : found;
}

std::vector<std::string> missing_features(std::string_view asked, const CpuFeatures& features) {
  std::istringstream words{std::string(asked)};
  std::vector<std::string> missing;
  for (std::string word; words >> word;)
    if (!features.contains(word)) missing.push_back(word);
  return missing;
}

}  // namespace ggufmill
