#pragma once
// Resources that the machine, and the container or batch job this process runs in, allow it to use.

#include <cstdint>
#include <limits>
#include <string>

namespace ggufmill {

// CPUs of this machine, and what limits their use by this process. The calling thread's affinity mask counts.
struct CpuLimits {
  unsigned online = 1;
  unsigned allowed = 1;       // of them, by affinity masks and cpusets; at least 1
  unsigned efficiency = 0;    // of the allowed ones, slower than the fastest by design; 0 if unknown
  unsigned memory_nodes = 1;  // to which the allowed ones belong (NUMA)
  double quota = std::numeric_limits<double>::infinity();  // CPU seconds per second that a container or job allows
  std::string quota_file{};                                // that sets the quota; empty if it is no file

  // Number of threads that can be busy; at least 1. A quota is rounded up: a thread more than a quota of 2.5 waits half
  // of the time at most, a thread less would waste a fifth of the quota.
  unsigned usable() const;
};
CpuLimits cpu_limits();
// Returns cpu_limits().usable().
unsigned usable_cpus();
// Bytes of memory of the machine, or of the container or job of this process if that is less.
std::uint64_t usable_memory();

// Features of an ARM64 CPU, as the bits of HWCAP and HWCAP2 of Linux; 0 on other machines.
struct ArmFeatureBits {
  std::uint64_t hwcap = 0, hwcap2 = 0;
};
ArmFeatureBits arm_feature_bits();

// Name of this machine in its network; empty if unknown.
std::string host_name();

}  // namespace ggufmill
