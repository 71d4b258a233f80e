#include "tests/bench/targets.h"

#include <algorithm>
#include <iterator>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill::bench {
namespace {

constexpr double kDecoding = 0.8;  // of memcpy

// Of x86-64-v4, one thread; 0: none.
struct TypeTarget {
  std::string_view type;
  double plain;
  double importance;
};

constexpr TypeTarget kEncoding[] = {
    {"Q4_K", 20, 20},   {"Q5_K", 20, 20},  {"Q2_K", 15, 15}, {"Q3_K", 8, 12},   {"Q6_K", 12, 12}, {"Q4_0", 3, 15},
    {"Q5_0", 3, 15},    {"Q4_1", 2, 15},   {"Q5_1", 2, 15},  {"Q8_0", 10, 0},   {"F16", 4, 0},    {"IQ4_NL", 20, 20},
    {"IQ4_XS", 20, 20}, {"IQ3_XXS", 8, 8}, {"IQ3_S", 8, 8},  {"IQ2_XXS", 0, 8}, {"IQ2_XS", 0, 8}, {"IQ2_S", 8, 8},
    {"IQ1_S", 0, 8},    {"IQ1_M", 8, 8},   {"TQ1_0", 6, 0},  {"TQ2_0", 6, 0},   {"MXFP4", 6, 0},  {"NVFP4", 6, 0},
    {"Q1_0", 6, 0},     {"Q2_0", 6, 0},
};

double part_of(std::string_view isa) { return isa == "x86-64-v4" ? 1 : isa == "x86-64-v3" ? 0.5 : 0; }

double of_v4(std::uint32_t operation, std::string_view type, bool importance) {
  if (operation == GGUFMILL_DECODE) return kDecoding;
  const auto* found = std::find_if(std::begin(kEncoding), std::end(kEncoding),
                                   [&](const TypeTarget& each) { return each.type == type; });
  if (found == std::end(kEncoding)) return 0;
  return importance ? found->importance : found->plain;
}

}  // namespace

std::optional<double> target(std::string_view isa, std::uint32_t operation, std::string_view type, bool importance) {
  const double value = part_of(isa) * of_v4(operation, type, importance);
  return value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace ggufmill::bench
