#pragma once
// Resources that the machine, and the container or batch job this process runs in, allow it to use.

#include <cstdint>
#include <string>

namespace ggufmill {

// Number of CPUs that this process may run on, but at most as many as its container or job keeps busy; at least 1.
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
