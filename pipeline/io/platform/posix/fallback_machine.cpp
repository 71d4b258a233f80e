#include <unistd.h>

#include <algorithm>

#include "pipeline/io/platform/machine.h"

namespace ggufmill {

CpuLimits cpu_limits() {
  const auto cpus = static_cast<unsigned>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1l));
  return {.online = cpus, .allowed = cpus};
}

std::uint64_t usable_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  return pages < 0 ? UINT64_MAX
                   : static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

ArmFeatureBits arm_feature_bits() { return {}; }

}  // namespace ggufmill
