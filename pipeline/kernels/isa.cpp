#include "pipeline/kernels/isa.h"

#include <algorithm>
#include <sstream>

#include "pipeline/io/platform/machine.h"
#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace ggufmill {
namespace {

// Bits of XCR0.
constexpr std::uint64_t kNone = 0;
constexpr std::uint64_t kYmm = 0x06;  // XMM and the upper halves of YMM
constexpr std::uint64_t kZmm = 0xe6;  // in addition, the masks, the upper halves of ZMM0-15, and ZMM16-31

struct X86Feature {
  const char* name;
  std::uint32_t X86Registers::*answer;
  unsigned bit;
  std::uint64_t state;
};

constexpr X86Feature kX86Features[] = {
    {"cmov", &X86Registers::leaf1_edx, 15, kNone},
    {"fxsr", &X86Registers::leaf1_edx, 24, kNone},
    {"sse", &X86Registers::leaf1_edx, 25, kNone},
    {"sse2", &X86Registers::leaf1_edx, 26, kNone},
    {"pni", &X86Registers::leaf1_ecx, 0, kNone},
    {"pclmulqdq", &X86Registers::leaf1_ecx, 1, kNone},
    {"ssse3", &X86Registers::leaf1_ecx, 9, kNone},
    {"fma", &X86Registers::leaf1_ecx, 12, kYmm},
    {"cx16", &X86Registers::leaf1_ecx, 13, kNone},
    {"sse4_1", &X86Registers::leaf1_ecx, 19, kNone},
    {"sse4_2", &X86Registers::leaf1_ecx, 20, kNone},
    {"movbe", &X86Registers::leaf1_ecx, 22, kNone},
    {"popcnt", &X86Registers::leaf1_ecx, 23, kNone},
    {"aes", &X86Registers::leaf1_ecx, 25, kNone},
    {"xsave", &X86Registers::leaf1_ecx, 26, kNone},
    {"avx", &X86Registers::leaf1_ecx, 28, kYmm},
    {"f16c", &X86Registers::leaf1_ecx, 29, kYmm},
    {"lahf_lm", &X86Registers::extended1_ecx, 0, kNone},
    {"abm", &X86Registers::extended1_ecx, 5, kNone},
    {"bmi1", &X86Registers::leaf7_ebx, 3, kNone},
    {"avx2", &X86Registers::leaf7_ebx, 5, kYmm},
    {"bmi2", &X86Registers::leaf7_ebx, 8, kNone},
    {"erms", &X86Registers::leaf7_ebx, 9, kNone},
    {"avx512f", &X86Registers::leaf7_ebx, 16, kZmm},
    {"avx512dq", &X86Registers::leaf7_ebx, 17, kZmm},
    {"adx", &X86Registers::leaf7_ebx, 19, kNone},
    {"avx512ifma", &X86Registers::leaf7_ebx, 21, kZmm},
    {"avx512cd", &X86Registers::leaf7_ebx, 28, kZmm},
    {"sha_ni", &X86Registers::leaf7_ebx, 29, kNone},
    {"avx512bw", &X86Registers::leaf7_ebx, 30, kZmm},
    {"avx512vl", &X86Registers::leaf7_ebx, 31, kZmm},
    {"avx512vbmi", &X86Registers::leaf7_ecx, 1, kZmm},
    {"avx512_vbmi2", &X86Registers::leaf7_ecx, 6, kZmm},
    {"gfni", &X86Registers::leaf7_ecx, 8, kNone},
    {"vaes", &X86Registers::leaf7_ecx, 9, kYmm},
    {"vpclmulqdq", &X86Registers::leaf7_ecx, 10, kYmm},
    {"avx512_vnni", &X86Registers::leaf7_ecx, 11, kZmm},
    {"avx512_bitalg", &X86Registers::leaf7_ecx, 12, kZmm},
    {"avx512_vpopcntdq", &X86Registers::leaf7_ecx, 14, kZmm},
    {"avx512_vp2intersect", &X86Registers::leaf7_edx, 8, kZmm},
    {"avx512_fp16", &X86Registers::leaf7_edx, 23, kZmm},
    {"avx_vnni", &X86Registers::leaf7_1_eax, 4, kYmm},
    {"avx512_bf16", &X86Registers::leaf7_1_eax, 5, kZmm},
    {"avx_ifma", &X86Registers::leaf7_1_eax, 23, kYmm},
};

struct ArmFeature {
  const char* name;
  unsigned word;  // 0: HWCAP, 1: HWCAP2
  unsigned bit;
};

constexpr ArmFeature kArmFeatures[] = {
    {"fp", 0, 0},        {"asimd", 0, 1},     {"aes", 0, 3},      {"pmull", 0, 4},    {"sha1", 0, 5},
    {"sha2", 0, 6},      {"crc32", 0, 7},     {"atomics", 0, 8},  {"fphp", 0, 9},     {"asimdhp", 0, 10},
    {"asimdrdm", 0, 12}, {"fcma", 0, 14},     {"sha3", 0, 17},    {"asimddp", 0, 20}, {"sha512", 0, 21},
    {"sve", 0, 22},      {"asimdfhm", 0, 23}, {"sve2", 1, 1},     {"sveaes", 1, 2},   {"svebitperm", 1, 4},
    {"frint", 1, 8},     {"svei8mm", 1, 9},   {"svebf16", 1, 12}, {"i8mm", 1, 13},    {"bf16", 1, 14},
};

#if defined(__x86_64__)
std::uint64_t read_xcr0() {
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

X86Registers read_registers() {
  constexpr std::uint32_t kOsxsave = 1u << 27;
  X86Registers r;
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) {
    r.leaf1_ecx = ecx, r.leaf1_edx = edx;
    if (ecx & kOsxsave) r.xcr0 = read_xcr0();
  }
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
    r.leaf7_ebx = ebx, r.leaf7_ecx = ecx, r.leaf7_edx = edx;
    const std::uint32_t last_subleaf = eax;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) r.leaf7_1_eax = eax;
  }
  if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx)) r.extended1_ecx = ecx;
  return r;
}
#endif

CpuFeatures read_features() {
#if defined(__x86_64__)
  return x86_features(read_registers());
#else
  const ArmFeatureBits bits = arm_feature_bits();
  return arm64_features(bits.hwcap, bits.hwcap2);
#endif
}

// The x86-64 levels are those of the System V psABI (x86-64-ABI 1.0, table 3.1), with the names of /proc/cpuinfo: SSE3
// is "pni", LZCNT is "abm". Each level includes the levels below it, so that one check is enough.
#define GGUFMILL_V2 "cx16 lahf_lm popcnt pni ssse3 sse4_1 sse4_2"
#define GGUFMILL_V3 GGUFMILL_V2 " avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
#define GGUFMILL_V4 GGUFMILL_V3 " avx512f avx512bw avx512cd avx512dq avx512vl"

constexpr Isa kIsas[] = {
    {"reference", 0, ""},          {"x86-64-v2", 1, GGUFMILL_V2}, {"x86-64-v3", 2, GGUFMILL_V3},
    {"x86-64-v4", 3, GGUFMILL_V4}, {"arm64-neon", 1, "asimd"},
};

#undef GGUFMILL_V2
#undef GGUFMILL_V3
#undef GGUFMILL_V4

}  // namespace

CpuFeatures x86_features(const X86Registers& registers) {
  CpuFeatures found;
  for (const X86Feature& feature : kX86Features) {
    const bool in_cpu = (registers.*feature.answer >> feature.bit) & 1;
    if (in_cpu && (registers.xcr0 & feature.state) == feature.state) found.insert(feature.name);
  }
  return found;
}

CpuFeatures arm64_features(std::uint64_t hwcap, std::uint64_t hwcap2) {
  CpuFeatures found;
  for (const ArmFeature& feature : kArmFeatures)
    if (((feature.word == 0 ? hwcap : hwcap2) >> feature.bit) & 1) found.insert(feature.name);
  return found;
}

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = read_features();
  return features;
}

std::span<const Isa> all_isas() { return kIsas; }

const Isa* find_isa(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kIsas), std::end(kIsas), [&](const Isa& isa) { return isa.name == name; });
  return found == std::end(kIsas) ? nullptr : found;
}

std::vector<std::string> missing_features(std::string_view asked, const CpuFeatures& features) {
  std::istringstream words{std::string(asked)};
  words.exceptions(std::ios::badbit);  // propagates std::bad_alloc
  std::vector<std::string> missing;
  for (std::string word; words >> word;)
    if (!features.contains(word)) missing.push_back(word);
  return missing;
}

}  // namespace ggufmill
