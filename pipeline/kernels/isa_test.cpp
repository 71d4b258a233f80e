#include "pipeline/kernels/isa.h"

#include <algorithm>

#include "tests/support/catch.h"

using namespace ggufmill;

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
