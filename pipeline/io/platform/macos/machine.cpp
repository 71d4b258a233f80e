// Unproven: compiled with stub headers, never run.
#include "pipeline/io/platform/machine.h"

#include <sys/sysctl.h>

#include <algorithm>

namespace ggufmill {
namespace {

// Returns 0 if the kernel has no number of this name.
std::uint64_t number_of(const char* name) {
  std::uint64_t number = 0;  // smaller numbers are stored in its first bytes
  std::size_t bytes = sizeof number;
  return ::sysctlbyname(name, &number, &bytes, nullptr, 0) == 0 ? number : 0;
}

struct NamedBit {
  const char* name;
  std::uint64_t ArmFeatureBits::*word;
  unsigned bit;  // of HWCAP or HWCAP2
};

constexpr NamedBit kArmBits[] = {
    {"hw.optional.floatingpoint", &ArmFeatureBits::hwcap, 0},
    {"hw.optional.AdvSIMD", &ArmFeatureBits::hwcap, 1},
    {"hw.optional.arm.FEAT_AES", &ArmFeatureBits::hwcap, 3},
    {"hw.optional.arm.FEAT_PMULL", &ArmFeatureBits::hwcap, 4},
    {"hw.optional.arm.FEAT_SHA1", &ArmFeatureBits::hwcap, 5},
    {"hw.optional.arm.FEAT_SHA256", &ArmFeatureBits::hwcap, 6},
    {"hw.optional.armv8_crc32", &ArmFeatureBits::hwcap, 7},
    {"hw.optional.arm.FEAT_LSE", &ArmFeatureBits::hwcap, 8},
    {"hw.optional.arm.FEAT_FP16", &ArmFeatureBits::hwcap, 9},
    {"hw.optional.arm.FEAT_FP16", &ArmFeatureBits::hwcap, 10},
    {"hw.optional.arm.FEAT_RDM", &ArmFeatureBits::hwcap, 12},
    {"hw.optional.arm.FEAT_FCMA", &ArmFeatureBits::hwcap, 14},
    {"hw.optional.arm.FEAT_SHA3", &ArmFeatureBits::hwcap, 17},
    {"hw.optional.arm.FEAT_DotProd", &ArmFeatureBits::hwcap, 20},
    {"hw.optional.arm.FEAT_SHA512", &ArmFeatureBits::hwcap, 21},
    {"hw.optional.arm.FEAT_FHM", &ArmFeatureBits::hwcap, 23},
    {"hw.optional.arm.FEAT_FRINTTS", &ArmFeatureBits::hwcap2, 8},
    {"hw.optional.arm.FEAT_I8MM", &ArmFeatureBits::hwcap2, 13},
    {"hw.optional.arm.FEAT_BF16", &ArmFeatureBits::hwcap2, 14},
};

}  // namespace

CpuLimits cpu_limits() {
  const auto cpus = static_cast<unsigned>(std::max<std::uint64_t>(number_of("hw.logicalcpu"), 1));
  // Level 0 has the fastest cores; there is no level 1 if all are equal.
  return {.online = cpus, .allowed = cpus, .efficiency = static_cast<unsigned>(number_of("hw.perflevel1.logicalcpu"))};
}

std::uint64_t usable_memory() {
  const std::uint64_t bytes = number_of("hw.memsize");
  return bytes == 0 ? UINT64_MAX : bytes;
}

ArmFeatureBits arm_feature_bits() {
  ArmFeatureBits bits;
  for (const NamedBit& each : kArmBits)
    if (number_of(each.name) != 0) bits.*each.word |= std::uint64_t{1} << each.bit;
  return bits;
}

}  // namespace ggufmill
