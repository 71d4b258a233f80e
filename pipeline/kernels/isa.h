#pragma once
// The instruction sets a module can be built for, ranked. The host's own table: a module names one, and neither it nor
// a file says what is better.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/kernels/cpu_features.h"

namespace ggufmill {

struct Isa {
  std::string_view name;
  int rank;                       // the kernel of the higher rank is chosen
  std::string_view cpu_features;  // what it needs, separated by spaces, as in /proc/cpuinfo
};

// Worst first.
std::span<const Isa> all_isas();
// Null when there is none.
const Isa* find_isa(std::string_view name);

// The words of `asked` (separated by spaces) that `features` lacks, in their order.
std::vector<std::string> missing_features(std::string_view asked, const CpuFeatures& features);

}  // namespace ggufmill
