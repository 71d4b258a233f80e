// Tests what the program knows about the types of ik_llama.cpp without their kernel module.
#include "pipeline/core/type_family.h"

#include <algorithm>

#include "pipeline/core/encoder.h"
#include "pipeline/core/wings.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/gguf/gguf.h"
#include "stages/quantize/recipe.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tsv.h"

using namespace ggufmill;

namespace {

const TypeFamily& ik() { return *family_member("IQ4_KS")->family; }

constexpr const char* kTypeHelp =
    "the kernel module ik (package ggufmill-ik) adds types of ik_llama.cpp; `ggufmill types` lists what is available";

}  // namespace

TEST_CASE("a type of the family is known by its name and its id") {
  CHECK(family_member("iq5_k_r4")->name == "IQ5_K_R4");
  CHECK(family_member(TypeId{144})->name == "IQ4_KS");
  CHECK(family_member("Q8_K_R16")->why.starts_with("its rows have other headers"));
  CHECK_FALSE(family_member("Q4_K"));
  CHECK_FALSE(family_member(TypeId{12}));
}

TEST_CASE("a type whose module is not loaded is an error with the module's package") {
  const Error unknown = unknown_type("iq4_ks", {});
  CHECK(unknown.what == "unknown quantization type 'iq4_ks'");
  CHECK(unknown.help == kTypeHelp);
  CHECK(unknown_type("iq5_k_r4", {}).help == kTypeHelp);
  CHECK(unknown_type("q4_k_r5", {}).help.starts_with("did you mean 'Q4_K_R4'?"));
  CHECK(unknown_type("ik", {}).what == "the kernel module 'ik' is not loaded");
  CHECK(unknown_encoder_help("ik", {}).starts_with("the kernel module ik (package ggufmill-ik) adds this encoder"));
}

TEST_CASE("types that look interleaved but are not are refused with the reason") {
  CHECK(unknown_type("bf16_r16", {}).what ==
        "the type BF16_R16 is not supported: it is for processors with AVX512-BF16");
}

TEST_CASE("a file with a type of ik_llama.cpp is an error that names the type") {
  GgufBuilder builder;
  REQUIRE(builder.types.add({144, "IQ4_KS", TypeClass::kForeign, 4, 3, {}}));
  builder.add_tensor("t", {8}, "IQ4_KS");
  const TempDir folder;
  write_text(folder.file("model.gguf"), builder.build());
  const auto model = read_gguf(folder.file("model.gguf"), {});
  REQUIRE_FALSE(model);
  CHECK(model.error().what == "tensor 't' is of the type IQ4_KS (144) of ik_llama.cpp");
  CHECK(model.error().help == kTypeHelp);
}

TEST_CASE("a recipe of a kernel module is offered only with the module") {
  const auto recipe = RecipeCatalog().find("iq4_ks");
  REQUIRE_FALSE(recipe);
  CHECK(recipe.error().what == "recipe 'IQ4_KS' needs the kernel module 'ik', which is not loaded");
  CHECK(recipe.error().help.starts_with("install the package ggufmill-ik, "));
  const auto offers = [](const RecipeCatalog& catalog) {
    const auto offered = catalog.offered();
    return std::ranges::count(offered, "IQ4_KS", &BuiltInRecipe::name);
  };
  CHECK(offers(RecipeCatalog()) == 0);
  Types types;
  REQUIRE(types.add({144, "IQ4_KS", TypeClass::kForeign, 256, 136, {}, 4}, "ik"));
  CHECK(offers(RecipeCatalog(types)) == 1);
}

TEST_CASE("27 recipes have another number if their rows are interleaved") {
  CHECK(heading_of(*find_built_in_recipe("ik-base")).interleaved_file_types.size() == 27);
}

// A build without the wing knows its types by these words alone.
TEST_CASE("the words of the wing are the names and ids of its types, its encoder and its recipes") {
  const Tsv wings = read_tsv("configs/wings.tsv");
  const auto row = std::ranges::find(wings.rows, "ik", [](const auto& each) { return each[0]; });
  REQUIRE(row != wings.rows.end());
  const std::string& words = (*row)[3];
  const auto check = [&](const auto& type) {
    CAPTURE(type.name);
    CHECK(wing_has_word(words, type.name));
    CHECK(wing_has_word(words, std::to_string(type.id)));
  };
  for (const auto& type : ik().types) check(type);
  for (const auto& type : ik().interleaved) check(type);
  for (const auto& type : ik().not_interleaved) check(type);
  CHECK(wing_has_word(words, ik().encoder));
  for (const auto& entry : fs::directory_iterator("plugins/ik/recipes"))
    CHECK(wing_has_word(words, entry.path().stem().string()));
  for (const TypeInfo& type : built_in_types()) {
    CAPTURE(type.name);
    CHECK_FALSE(wing_has_word(words, type.name));
    CHECK_FALSE(wing_has_word(words, std::to_string(type.id)));
  }
}
