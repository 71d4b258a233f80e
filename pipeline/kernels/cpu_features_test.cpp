#include "pipeline/kernels/cpu_features.h"

#include <fstream>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace ggufmill;

namespace {

constexpr std::uint32_t kAll = 0xffffffff;
constexpr std::uint64_t kSse = 0x3, kYmm = 0x7, kZmm = 0xe7;

X86Registers everything(std::uint64_t xcr0) { return {kAll, kAll, kAll, kAll, kAll, kAll, kAll, xcr0}; }

// The words of the first "flags" (x86) or "Features" (arm64) line; empty where there is none.
CpuFeatures proc_cpuinfo() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    CpuFeatures found;
    for (std::string word; words >> word;) found.insert(word);
    return found;
  }
  return {};
}

}  // namespace

TEST_CASE("AVX counts only where the system saves YMM") {
  const CpuFeatures without = x86_features(everything(kSse));
  for (const char* name : {"avx", "avx2", "fma", "f16c", "vaes", "avx_vnni"}) {
    CAPTURE(name);
    CHECK_FALSE(without.contains(name));
    CHECK(x86_features(everything(kYmm)).contains(name));
  }
  for (const char* name : {"sse4_2", "popcnt", "bmi2", "abm", "movbe"}) CHECK(without.contains(name));
}

TEST_CASE("AVX-512 counts only where the system saves masks and ZMM") {
  for (const char* name : {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_bf16"}) {
    CAPTURE(name);
    CHECK_FALSE(x86_features(everything(kYmm)).contains(name));
    CHECK_FALSE(x86_features(everything(kZmm & ~0x20ull)).contains(name));  // masks
    CHECK_FALSE(x86_features(everything(kZmm & ~0x40ull)).contains(name));  // upper halves
    CHECK_FALSE(x86_features(everything(kZmm & ~0x80ull)).contains(name));  // upper registers
    CHECK(x86_features(everything(kZmm)).contains(name));
  }
}

TEST_CASE("one bit of CPUID is one feature") {
  X86Registers registers;
  registers.leaf7_ebx = 1u << 5;
  registers.xcr0 = kYmm;
  CHECK(x86_features(registers) == CpuFeatures{"avx2"});
}

TEST_CASE("arm64 features come from both words of hardware capabilities") {
  CHECK(arm64_features(0b11, 0) == CpuFeatures{"asimd", "fp"});
  CHECK(arm64_features(0, 1u << 1) == CpuFeatures{"sve2"});
  CHECK(arm64_features(0, 0).empty());
}

TEST_CASE("no feature is claimed that the system does not list") {
  const CpuFeatures listed = proc_cpuinfo();
  if (listed.empty()) GGUFMILL_SKIP("/proc/cpuinfo lists no features here");
  for (const std::string& name : cpu_features()) {
    CAPTURE(name);
    CHECK(listed.contains(name));
  }
}
