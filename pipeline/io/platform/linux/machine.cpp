#include "pipeline/io/platform/machine.h"

#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <vector>

#include "pipeline/io/platform/linux/control_group.h"
#include "pipeline/io/platform/linux/cpu_limits.h"

namespace ggufmill {
namespace {

// Returns the numbers of the CPUs in this thread's affinity mask, which also reflects cpusets and a job bound to a NUMA
// node; none if the kernel does not tell. The mask is doubled until it has room for all CPUs of the kernel.
std::vector<unsigned> allowed_cpus() {
  constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT, kMaxCpus = 1 << 20;
  for (std::size_t cpus = 1024; cpus <= kMaxCpus; cpus *= 2) {
    std::vector<unsigned long> mask(cpus / kBits);
    if (::sched_getaffinity(0, mask.size() * sizeof mask[0], reinterpret_cast<cpu_set_t*>(mask.data())) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    std::vector<unsigned> allowed;
    for (unsigned cpu = 0; cpu < cpus; ++cpu)
      if ((mask[cpu / kBits] >> (cpu % kBits) & 1) != 0) allowed.push_back(cpu);
    return allowed;
  }
  return {};
}

}  // namespace

CpuLimits cpu_limits() { return cpu_limits_in("", allowed_cpus()); }

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
