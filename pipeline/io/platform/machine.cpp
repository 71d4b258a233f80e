#include "pipeline/io/platform/machine.h"

#include <algorithm>
#include <cmath>

namespace ggufmill {

unsigned CpuLimits::usable() const {
  return static_cast<unsigned>(std::max(std::ceil(std::min<double>(allowed, quota)), 1.0));
}

unsigned usable_cpus() { return cpu_limits().usable(); }

}  // namespace ggufmill
