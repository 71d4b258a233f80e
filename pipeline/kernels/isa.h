#pragma once
// CPU features that the CPU and the operating system make available to kernels, under their names in /proc/cpuinfo; and
// the instruction sets (ISAs) that a module can be built for, ranked. The ranking is a table of the host: a module only
// names an ISA, and neither modules nor files influence the ranking.

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

using CpuFeatures = std::set<std::string, std::less<>>;

// Returns the features of this machine; read once. x86-64: CPUID and XCR0, read directly; arm64: the kernel's hardware
// capabilities; other machines: none. Contains only features that kernels may use, not all of /proc/cpuinfo.
const CpuFeatures& cpu_features();

// Results of CPUID; 0 if the machine does not have the leaf.
struct X86Registers {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf1_edx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_ecx = 0;
  std::uint32_t leaf7_edx = 0;
  std::uint32_t leaf7_1_eax = 0;    // leaf 7, subleaf 1
  std::uint32_t extended1_ecx = 0;  // leaf 0x80000001
  std::uint64_t xcr0 = 0;           // register state saved by the operating system; 0 without OSXSAVE
};

// Pure function. A feature that uses YMM registers (or ZMM and mask registers) counts only if the operating system
// saves them: Intel SDM volume 1, 14.3 and 15.2.
CpuFeatures x86_features(const X86Registers& registers);

// Pure function. The arguments are AT_HWCAP and AT_HWCAP2 of an arm64 Linux (Documentation/arch/arm64/elf_hwcaps.rst).
CpuFeatures arm64_features(std::uint64_t hwcap, std::uint64_t hwcap2);

struct Isa {
  std::string_view name;
  int rank;                       // the kernel with the highest rank is chosen
  std::string_view cpu_features;  // required features, separated by spaces, named as in /proc/cpuinfo
};

// Returns all ISAs: the reference, then those of each architecture, worst first.
std::span<const Isa> all_isas();
// Returns null if the ISA is unknown.
const Isa* find_isa(std::string_view name);

// Returns the words of `asked` (separated by spaces) that are missing from `features`, in their order.
std::vector<std::string> missing_features(std::string_view asked, const CpuFeatures& features);

}  // namespace ggufmill
