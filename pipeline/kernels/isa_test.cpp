#include "pipeline/kernels/isa.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

constexpr std::uint32_t kAll = 0xffffffff;
constexpr std::uint64_t kSse = 0x3, kYmm = 0x7, kZmm = 0xe7;

X86Registers everything(std::uint64_t xcr0) { return {kAll, kAll, kAll, kAll, kAll, kAll, kAll, xcr0}; }

// Returns the words of the first "flags" (x86) or "Features" (arm64) line; empty if there is none.
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

TEST_CASE("the ISAs are ranked") {
  const char* const order[] = {"reference", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  for (std::size_t i = 0; i + 1 < std::size(order); ++i) CHECK(find_isa(order[i])->rank < find_isa(order[i + 1])->rank);
  CHECK(find_isa("reference")->rank < find_isa("arm64-neon")->rank);
}

TEST_CASE("unknown ISAs are unknown") {
  for (const char* name : {"", "x86-64-v5", "X86-64-V3", "avx2"}) CHECK(find_isa(name) == nullptr);
}

TEST_CASE("every level of x86-64 needs all that the one below needs") {
  auto words_of = [](const char* isa) {
    CpuFeatures words;
    for (std::string& word : missing_features(find_isa(isa)->cpu_features, {})) words.insert(std::move(word));
    return words;
  };
  const CpuFeatures v2 = words_of("x86-64-v2"), v3 = words_of("x86-64-v3"), v4 = words_of("x86-64-v4");
  CHECK(v2.size() == 7);
  CHECK(std::includes(v3.begin(), v3.end(), v2.begin(), v2.end()));
  CHECK(std::includes(v4.begin(), v4.end(), v3.begin(), v3.end()));
  CHECK(v4.contains("avx512vl"));
  CHECK_FALSE(v3.contains("avx512f"));
}

TEST_CASE("the features of every ISA are ones that can be found") {
  const CpuFeatures x86 = x86_features({~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0ull});
  const CpuFeatures arm = arm64_features(~0ull, ~0ull);
  for (const Isa& isa : all_isas()) {
    CAPTURE(isa.name);
    CHECK(missing_features(isa.cpu_features, isa.name.starts_with("arm") ? arm : x86).empty());
  }
}

TEST_CASE("missing features keep the order they were asked in") {
  CHECK(missing_features("c  a b", {"a"}) == std::vector<std::string>{"c", "b"});
  CHECK(missing_features("", {}).empty());
}
