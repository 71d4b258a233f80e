#pragma once
// What the CPU and the operating system let a kernel use, by the names of /proc/cpuinfo; and the instruction sets that
// a module can be built for, ranked. The ranking is the host's own table: a module names an ISA, and neither it nor a
// file says what is better.

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

using CpuFeatures = std::set<std::string, std::less<>>;

// The features of the machine this runs on; read once. x86-64: CPUID and XCR0, read without the kernel's help; arm64:
// the kernel's hardware capabilities; other machines: none. Knows the features that kernels can have a use for, not all
// of /proc/cpuinfo.
const CpuFeatures& cpu_features();

// The answers of CPUID; 0 where the machine does not have the leaf.
struct X86Registers {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf1_edx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_ecx = 0;
  std::uint32_t leaf7_edx = 0;
  std::uint32_t leaf7_1_eax = 0;    // leaf 7, subleaf 1
  std::uint32_t extended1_ecx = 0;  // leaf 0x80000001
  std::uint64_t xcr0 = 0;           // register state that the operating system saves; 0 without OSXSAVE
};

// Pure. A feature that works on YMM (ZMM and mask) registers counts only if the operating system saves those: Intel
// SDM volume 1, 14.3 and 15.2.
CpuFeatures x86_features(const X86Registers& registers);

// Pure. The arguments are AT_HWCAP and AT_HWCAP2 of an arm64 Linux (Documentation/arch/arm64/elf_hwcaps.rst).
CpuFeatures arm64_features(std::uint64_t hwcap, std::uint64_t hwcap2);

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
