// Encoders of modules: which kernels are refused, and which are chosen.

#include <fmt/format.h>

#include "pipeline/core/encoder.h"
#include "pipeline/kernels/module_set.h"
#include "plugins/reference/reference.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

constexpr TypeId kQ4_0 = 2, kQ4_K = 12;

std::int32_t run_nothing(const ggufmill_call*) { return GGUFMILL_OK; }

constexpr ggufmill_kernel encoder(const char* name) {
  return {GGUFMILL_ENCODE, kQ4_0, 32, 18, 0, 0, "Q4_0", run_nothing, name, nullptr, 0, 0};
}

ggufmill_module module_of(std::span<const ggufmill_kernel> kernels, const char* name = "test") {
  return {GGUFMILL_MAGIC,
          sizeof(ggufmill_module),
          GGUFMILL_ABI_MAJOR,
          GGUFMILL_ABI_MINOR,
          sizeof(ggufmill_kernel),
          static_cast<std::uint32_t>(kernels.size()),
          name,
          "1",
          "reference",
          "",
          kernels.data()};
}

// The faults that the checks of a module find.
struct Checked {
  Types types;
  KernelOwners owners;
  std::vector<ggufmill_kernel> usable;
  std::vector<std::string> passed_over;
  std::string refusal;

  void add(std::span<const ggufmill_kernel> kernels, const char* name = "test") {
    usable.clear();
    passed_over.clear();
    refusal = check_kernels(module_of(kernels, name), types, owners, usable, passed_over);
  }
  explicit Checked(std::span<const ggufmill_kernel> kernels) { add(kernels); }
};

// The linked-in reference, and a module for x86-64-v2 with a search of Q4_K.
ModuleSet modules_with_search() {
  ModuleSet set(cpu_features());
  set.add_built_in(ggufmill_reference_module);
  set.add_directory(fmt::format("{}/search_v2", GGUFMILL_TEST_MODULES));
  return set;
}

const char* module_for(const KernelTable& table, TypeId type) {
  return table.at({GGUFMILL_ENCODE, type, "search"}).choice.module->name;
}

}  // namespace

TEST_CASE("an encoder of a module belongs to the types that have it") {
  const ggufmill_kernel kernels[] = {encoder(nullptr), encoder("best-1")};
  const Checked checked(kernels);
  CHECK(checked.refusal.empty());
  CHECK(checked.usable.size() == 2);
  const EncoderMethod* method = checked.types.find_encoder("best-1");
  REQUIRE(method != nullptr);
  CHECK(has_method(*method, type_named("Q4_0")));
  CHECK_FALSE(has_method(*method, type_named("Q4_1")));
}

TEST_CASE("the name of the default encoder is that of no encoder") {
  const ggufmill_kernel kernels[] = {encoder(nullptr), encoder("reference")};
  CHECK(Checked(kernels).refusal == "has two kernels that encode 'Q4_0' (type id 2)");
}

TEST_CASE("a name can be had once, and is written in lower case") {
  const ggufmill_kernel twice[] = {encoder("a"), encoder("a")}, upper[] = {encoder("Best")}, none[] = {encoder("")};
  CHECK(Checked(twice).refusal == "has two kernels that encode 'Q4_0' (type id 2) with the encoder 'a'");
  const std::string bad =
      "the kernel that encodes type id 2 names its encoder, but not with lower-case letters, digits, '-', '_'";
  CHECK(Checked(upper).refusal == bad);
  CHECK(Checked(none).refusal == bad);
}

TEST_CASE("a decoder has no encoder's name") {
  ggufmill_kernel kernel = encoder("a");
  kernel.operation = GGUFMILL_DECODE;
  CHECK(Checked({&kernel, 1}).refusal == "the kernel that decodes type id 2 names its encoder, but is a decoder");
}

TEST_CASE("a search of a built-in type without one is skipped, as there is nothing to compare it with") {
  ggufmill_kernel kernels[] = {encoder("search"), encoder("search")};
  kernels[1].type_id = type_named("F16").id;
  kernels[1].name = "F16";
  kernels[1].block_elements = 1;
  kernels[1].block_bytes = 2;
  const Checked checked(kernels);
  CHECK(checked.usable.size() == 1);
  CHECK(checked.passed_over ==
        std::vector<std::string>{
            "this version has no search for 'F16' to compare with; another encoder needs another name"});
}

TEST_CASE("an encoder of a second module with the same name is skipped, and both modules are named") {
  const ggufmill_kernel kernels[] = {encoder(nullptr), encoder("a")};
  Checked checked(kernels);
  checked.add(kernels, "other");
  CHECK(checked.usable.size() == 1);
  REQUIRE(checked.passed_over.size() == 1);
  CHECK(checked.passed_over[0] ==
        "the module 'other' encodes 'Q4_0' with the encoder 'a', and so does the module 'test'");
  checked.add(kernels);  // another ISA of the first
  CHECK(checked.usable.size() == 2);
}

TEST_CASE("kernels of a foreign type that another module has are skipped") {
  ggufmill_kernel own = encoder(nullptr);
  own.type_id = GGUFMILL_FIRST_FOREIGN_TYPE + 7;
  own.name = "X_OWN";
  Checked checked({&own, 1});
  CHECK(checked.usable.size() == 1);
  checked.add({&own, 1}, "other");
  REQUIRE(checked.passed_over.size() == 1);
  CHECK(checked.passed_over[0] == "the module 'other' encodes 'X_OWN', and so does the module 'test'");
  CHECK(checked.refusal == "has no kernel that can be used: " + checked.passed_over[0]);
}

TEST_CASE("the search of the better ISA is chosen, type by type") {
  const ModuleSet set = modules_with_search();
  if (set.modules().size() != 2) GGUFMILL_SKIP("this CPU lacks x86-64-v2");
  const KernelTable table = choose(set.modules(), "");
  CHECK(module_for(table, kQ4_K) == std::string("variant"));
  CHECK(module_for(table, type_named("Q6_K").id) == std::string("reference"));
}

TEST_CASE("a forced ISA without a search leaves it to the linked-in reference") {
  const ModuleSet set = modules_with_search();
  if (set.modules().size() != 2) GGUFMILL_SKIP("this CPU lacks x86-64-v2");
  CHECK(module_for(choose(set.modules(), "reference"), kQ4_K) == std::string("reference"));
}
