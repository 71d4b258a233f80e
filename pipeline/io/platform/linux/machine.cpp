#include "pipeline/io/platform/machine.h"

#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "pipeline/io/platform/linux/control_group.h"

namespace ggufmill {

unsigned usable_cpus() {
  cpu_set_t mask;
  double cpus = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  // The affinity mask also reflects a job bound to a NUMA node. The call fails on machines with more than 1024 CPUs.
  if (::sched_getaffinity(0, sizeof(mask), &mask) == 0) cpus = CPU_COUNT(&mask);
  return static_cast<unsigned>(std::max(std::ceil(std::min(cpus, ControlGroup().cpus())), 1.0));
}

std::uint64_t usable_memory() {
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  return std::min(pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)), ControlGroup().memory());
}

ArmFeatureBits arm_feature_bits() {
#ifdef __aarch64__
  return {::getauxval(AT_HWCAP), ::getauxval(AT_HWCAP2)};
#else
  return {};
#endif
}

}  // namespace ggufmill
