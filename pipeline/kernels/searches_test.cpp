// Searches of modules: which are refused, and which are chosen.

#include <fmt/format.h>

#include "pipeline/kernels/module_set.h"
#include "plugins/reference/reference.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

constexpr TypeId kQ4_K = 12;

std::int32_t run_nothing(const ggufmill_search_call*) { return GGUFMILL_OK; }

constexpr ggufmill_search_kernel kGood = {kQ4_K, 0, run_nothing};

using Searches = std::vector<const ggufmill_search_kernel*>;

ggufmill_search_table table_of(std::span<const ggufmill_search_kernel> kernels) {
  return {sizeof(ggufmill_search_table), sizeof(ggufmill_search_kernel), kernels.size(), kernels.data()};
}

std::string refusal_of(std::span<const ggufmill_search_kernel> kernels) {
  Searches usable;
  return check_searches(table_of(kernels), usable);
}

// The linked-in reference, and a module for x86-64-v2 whose only search is kGood.
std::vector<LoadedModule> modules_with_search() {
  ModuleSet set(cpu_features());
  set.add_built_in(ggufmill_reference_module, ggufmill_reference_searches);
  set.add_directory(fmt::format("{}/v2", GGUFMILL_TEST_MODULES));
  std::vector<LoadedModule> modules = set.modules();
  if (modules.size() == 2) modules.back().searches = {&kGood};
  return modules;
}

}  // namespace

TEST_CASE("the searches of a module are used") {
  Searches usable;
  const ggufmill_search_kernel kernels[] = {kGood};
  CHECK(check_searches(table_of(kernels), usable).empty());
  CHECK(usable == Searches{&kernels[0]});
}

TEST_CASE("a search of a type without one is passed over") {
  Searches usable;
  const ggufmill_search_kernel kernels[] = {{999, 0, run_nothing}};
  CHECK(check_searches(table_of(kernels), usable).empty());
  CHECK(usable.empty());
}

TEST_CASE("a search without a function is refused") {
  const ggufmill_search_kernel kernels[] = {{kQ4_K, 0, nullptr}};
  CHECK(refusal_of(kernels) == "the search of type id 12 has no function or unknown flags");
}

TEST_CASE("two searches of a type are refused") {
  const ggufmill_search_kernel kernels[] = {kGood, kGood};
  CHECK(refusal_of(kernels) == "has two searches of type id 12");
}

TEST_CASE("a table of searches of another size is refused") {
  ggufmill_search_table table = table_of({&kGood, 1});
  table.kernel_size = 8;
  Searches usable;
  CHECK(check_searches(table, usable).find("a table of searches of 24 bytes with 8 each") != std::string::npos);
}

TEST_CASE("the search of the better ISA is chosen, type by type") {
  const std::vector<LoadedModule> modules = modules_with_search();
  if (modules.size() != 2) GGUFMILL_SKIP("this CPU lacks x86-64-v2");
  const SearchTable table = choose_searches(modules, "");
  CHECK(table.at(kQ4_K).kernel == &kGood);
  CHECK(table.at(type_named("Q6_K").id).module == &ggufmill_reference_module);
}

TEST_CASE("a forced ISA without a search leaves it to the linked-in reference") {
  const std::vector<LoadedModule> modules = modules_with_search();
  if (modules.size() != 2) GGUFMILL_SKIP("this CPU lacks x86-64-v2");
  CHECK(choose_searches(modules, "reference").at(kQ4_K).module == &ggufmill_reference_module);
}
