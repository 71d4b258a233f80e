#include "pipeline/kernels/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "pipeline/core/installation.h"
#include "pipeline/io/platform/system.h"
#include "pipeline/kernels/module_set.h"
#include "plugins/reference/reference.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

constexpr std::string_view kNoText;

constexpr TypeId kF32 = 0, kExample = GGUFMILL_FIRST_FOREIGN_TYPE + 1;

std::string folder_of(const std::string& name) { return fmt::format("{}/{}", GGUFMILL_TEST_MODULES, name); }

std::shared_ptr<const Kernels> load(const KernelOptions& options) {
  auto kernels = Kernels::load(options);
  if (!kernels) FAIL(render(kernels.error()));
  return kernels.value();
}

bool has_v2() { return missing_features(find_isa("x86-64-v2")->cpu_features, cpu_features()).empty(); }

// Returns the built-in reference and the modules of the named folders of tests/support/modules, but none of the host's
// own modules.
ModuleSet set_of(const std::vector<std::string>& names) {
  ModuleSet set(cpu_features());
  set.add_built_in(ggufmill_reference_module);
  for (const std::string& name : names) REQUIRE(set.add_directory(folder_of(name)));
  return set;
}

std::string isa_of(const KernelTable& table, std::uint32_t operation, TypeId type) {
  const auto found = table.find({operation, type, ""});
  return found == table.end() ? "none" : found->second.choice.module->isa;
}

}  // namespace

TEST_CASE("the linked-in reference alone serves every type that it has") {
  const ModuleSet set = set_of({});
  REQUIRE(set.modules().size() == 1);
  CHECK(choose(set.modules(), "").size() == ggufmill_reference_module.kernel_count);
}

TEST_CASE("a module of the same ISA takes precedence over the linked-in reference") {
  const ModuleSet set = set_of({"plain"});
  const KernelTable table = choose(set.modules(), "");
  CHECK(table.at({GGUFMILL_DECODE, kF32, ""}).choice.module->name == std::string("variant"));
  CHECK(ranked(set.modules()).back()->module == &ggufmill_reference_module);
}

TEST_CASE("among equals the module that was found first is chosen") {
  const ModuleSet set = set_of({"plain", "other_name"});
  CHECK(choose(set.modules(), "").at({GGUFMILL_DECODE, kF32, ""}).choice.module->name == std::string("variant"));
}

TEST_CASE("the better ISA is chosen, type by type") {
  if (!has_v2()) GGUFMILL_SKIP("this CPU lacks x86-64-v2");
  const ModuleSet set = set_of({"plain", "v2"});
  const KernelTable table = choose(set.modules(), "");
  CHECK(isa_of(table, GGUFMILL_DECODE, kF32) == "x86-64-v2");
  CHECK(isa_of(table, GGUFMILL_DECODE, type_named("Q8_0").id) == "reference");
}

TEST_CASE("a forced ISA takes nothing from another, but for foreign types") {
  if (!has_v2()) GGUFMILL_SKIP("this CPU lacks x86-64-v2");
  const ModuleSet set = set_of({"v2", "example"});
  const KernelTable table = choose(set.modules(), "x86-64-v2");
  CHECK(isa_of(table, GGUFMILL_DECODE, kF32) == "x86-64-v2");
  CHECK(isa_of(table, GGUFMILL_DECODE, type_named("Q8_0").id) == "none");
  CHECK(isa_of(table, GGUFMILL_DECODE, kExample) == "reference");
  CHECK(isa_of(choose(set.modules(), "reference"), GGUFMILL_DECODE, kF32) == "reference");
}

TEST_CASE("the module that identifies a run does not depend on the ISA of its kernels") {
  if (!has_v2()) GGUFMILL_SKIP("this CPU lacks x86-64-v2");
  const auto plain = load({{folder_of("own_type")}, ""});
  const auto both = load({{folder_of("own_type_v2"), folder_of("own_type")}, ""});
  const TypeInfo* type = both->types().find("X_OWN");
  REQUIRE(type);
  CHECK(both->encode(type->id)->module->isa == std::string("x86-64-v2"));
  const auto modules = both->modules_of(std::array{ForeignUse{type}});
  REQUIRE(modules.size() == 1);
  CHECK(modules == plain->modules_of(std::array{ForeignUse{plain->types().find("X_OWN")}}));
}

TEST_CASE("whichever ISA is forced, its own kernels run") {
  const auto all = load({});
  for (const auto& [module, own] : all->modules()) {
    const auto kernels = load({{}, module->isa});
    CHECK(kernels->isa() == module->isa);
    for (const TypeInfo& type : built_in_types()) {
      if (type.type_class == TypeClass::kForeign) continue;
      CAPTURE(module->isa, type.name);
      for (const KernelChoice* choice : {kernels->decode(type.id), kernels->encode(type.id)})
        if (choice) CHECK(choice->module->isa == std::string(module->isa));
    }
  }
}

TEST_CASE("the host's own modules are found next to the program and used") {
  const auto kernels = load({});
  const std::string path = own_data_folder() + "/reference" GGUFMILL_MODULE_ENDING;
  const auto& reports = kernels->reports();
  const auto own = std::find_if(reports.begin(), reports.end(), [&](auto& report) { return report.path == path; });
  REQUIRE(own != reports.end());
  CHECK(own->refusal == kNoText);
  CHECK(load({{}, "reference"})->decode(kF32)->module != &ggufmill_reference_module);
}

TEST_CASE("reports count what was chosen") {
  std::size_t chosen = 0;
  const auto kernels = load({{folder_of("example")}, "reference"});
  for (const ModuleReport& report : kernels->reports()) chosen += report.chosen;
  CHECK(chosen == ggufmill_reference_module.kernel_count + 2);
  CHECK(kernels->reports().back().chosen == 2);
}

TEST_CASE("an unknown forced ISA is an error that names what is available") {
  const auto kernels = Kernels::load({{}, "x86-64-v9"});
  REQUIRE_FALSE(kernels);
  CHECK(kernels.error().code == ExitCode::kKernel);
  CHECK(kernels.error().what == "unknown ISA 'x86-64-v9'");
  CHECK(kernels.error().help.find("reference") != std::string::npos);
}

TEST_CASE("a forced ISA that cannot run here is an error that reports what is missing") {
  const std::string isa = has_v2() ? "arm64-neon" : "x86-64-v2";
  const auto kernels = Kernels::load({{}, isa});
  REQUIRE_FALSE(kernels);
  CHECK(kernels.error().code == ExitCode::kKernel);
  CHECK(kernels.error().what.find("ISA '" + isa + "' cannot run here: this CPU or system does not support ") == 0);
}

TEST_CASE("a missing kernel is an error that names the modules a forced ISA keeps out") {
  const auto kernels = load({{folder_of("example")}, "reference"});
  const TypeId byte = find_source_type("U8")->id;
  REQUIRE(kernels->encode(byte) == nullptr);
  const Error error = kernels->missing(GGUFMILL_ENCODE, byte);
  CHECK(error.code == ExitCode::kKernel);
  CHECK(error.what == "no kernel encodes type 'U8' for the forced ISA 'reference'");
  CHECK(kernels->missing(GGUFMILL_DECODE, kExample).detail == "modules that have one: example (reference)");
}

TEST_CASE("a kernel directory that cannot be used is an error") {
  const TempDir empty;
  for (const std::string& directory : {std::string("/no/such/folder"), std::string(), empty.path().string()}) {
    CAPTURE(directory);
    const auto kernels = Kernels::load({{directory}, ""});
    REQUIRE_FALSE(kernels);
    CHECK(kernels.error().code == ExitCode::kKernel);
    CHECK(kernels.error().what.find("kernel directory '" + directory + "'") == 0);
  }
}

TEST_CASE("a kernel directory whose modules are all refused causes a warning") {
  CHECK(load({{folder_of("plain")}, ""})->warnings().empty());
  const auto kernels = load({{folder_of("not_elf"), folder_of("plain"), folder_of("no_kernels")}, ""});
  REQUIRE(kernels->warnings().size() == 2);
  const std::string refusal = kIsPosix ? "not_elf.so: is not an ELF file" : "not_elf.dll: is not a DLL";
  CHECK(kernels->warnings()[0] == "no kernel module in '" + folder_of("not_elf") + "' can be used: " + refusal);
  CHECK(kernels->warnings()[1].find("no_kernels" GGUFMILL_MODULE_ENDING ": has 0 kernels") != std::string::npos);
}

TEST_CASE("a kernel that collides with another module's is named in a warning") {
  const std::string collision =
      "the module 'other' defines type 'IQ4_K' (id 139) differently than the module 'variant'";
  const auto apart = load({{folder_of("registered_type"), folder_of("registered_type_other")}, ""});
  REQUIRE(apart->warnings().size() == 1);
  CHECK(apart->warnings()[0] == "no kernel module in '" + folder_of("registered_type_other") +
                                    "' can be used: registered_type_other" GGUFMILL_MODULE_ENDING
                                    ": has no kernel that can be used: " +
                                    collision);

  const TempDir dir;
  for (const std::string name : {"registered_type", "registered_type_other"})
    fs::copy_file(folder_of(name) + "/" + name + GGUFMILL_MODULE_ENDING, dir.path() / (name + GGUFMILL_MODULE_ENDING));
  const auto together = load({{dir.path().string()}, ""});
  REQUIRE(together->warnings().size() == 1);
  CHECK(together->warnings()[0] == "kernels of '" +
                                       (dir.path() / "registered_type_other" GGUFMILL_MODULE_ENDING).string() +
                                       "' are not used: " + collision);
}

TEST_CASE("a module in plain C adds a type of its own, there and back") {
  const auto kernels = load({{folder_of("example")}, ""});
  const TypeInfo* type = kernels->types().find("x3_example");
  CHECK(load({})->types().find("x3_example") == nullptr);
  REQUIRE(type != nullptr);
  CHECK(type->id == kExample);
  CHECK(type->type_class == TypeClass::kForeign);

  constexpr std::uint64_t kRows = 3, kCols = 32;
  std::vector<float> values(kRows * kCols), back(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 16) - 127.0f;
  std::vector<std::byte> blocks(bytes_of(*type, values.size()).value());
  const KernelCall encode{values.data(), blocks.data(), kRows, kCols, nullptr};
  const KernelCall decode{blocks.data(), back.data(), kRows, kCols, nullptr};
  REQUIRE(call_kernel(*kernels->encode(kExample), encode) == GGUFMILL_OK);
  REQUIRE(call_kernel(*kernels->decode(kExample), decode) == GGUFMILL_OK);
  CHECK(blocks.size() == 6 * 20);
  CHECK(back == values);  // the largest magnitude of each block is 127, so its scale is 1
}
