// Tests the syntax of recipe files and how recipes extend each other.
#include "stages/quantize/recipe.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

Result<Recipe> find(const std::string& name) { return RecipeCatalog().find(name); }

// A temporary folder with recipe files.
struct Folder {
  TempDir folder;
  std::string path(const std::string& name) const { return folder.file(name + ".yaml"); }
  Result<Recipe> write(const std::string& name, const std::string& text) const {
    write_text(path(name), text);
    return find(path(name));
  }
  Error error(const std::string& text) const {
    const auto recipe = write("mine", text);
    REQUIRE_FALSE(recipe);
    CHECK(recipe.error().code == ExitCode::kUsage);
    return recipe.error();
  }
};

std::vector<std::string> texts(const std::vector<Rule>& rules) {
  std::vector<std::string> all;
  all.reserve(rules.size());
  for (const Rule& rule : rules) all.push_back(rule.text);
  return all;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a recipe is found by its name in any letter case") {
  CHECK(find("Q4_K_M").value().name == "Q4_K_M");
  CHECK(find("q4_k_m").value().name == "Q4_K_M");
}

TEST_CASE("a recipe is found by its alias") { CHECK(find("q4_k").value().name == "Q4_K_M"); }

TEST_CASE("an unknown recipe is an error with a suggestion") {
  const auto recipe = find("Q4_K_N");
  REQUIRE_FALSE(recipe);
  CHECK(recipe.error().what == "unknown recipe 'Q4_K_N'");
  CHECK(recipe.error().help.find("did you mean 'Q4_K_M'?") != std::string::npos);
}

TEST_CASE("a recipe file that names a module needs it as well") {
  const Folder folder;
  const Error problem = folder.error("{type: Q4_K, module: other}");
  CHECK(problem.what == "recipe '" + folder.path("mine") + "' needs the kernel module 'other', which is not loaded");
  CHECK(problem.help.starts_with("install the package ggufmill-other, "));
  CHECK(folder.error("{type: X3_EXAMPLE, module: other}").what == problem.what);
}

TEST_CASE("a recipe decides the order of tensors and keys, and takes it over from what it extends") {
  const Folder folder;
  CHECK_FALSE(folder.write("plain", "{type: Q4_K}").value().by_layer);
  REQUIRE(folder.write("parent", "{order: source, keys: in_place, positions: of_all}"));
  const Recipe recipe = folder.write("mine", "{extends: '" + folder.path("parent") + "', keys: moved}").value();
  CHECK(recipe.by_layer == false);
  CHECK(recipe.keys_in_place == false);
  CHECK(recipe.counts_all == true);
}

TEST_CASE("a recipe takes over the encoder of what it extends") {
  const Folder folder;
  REQUIRE(folder.write("parent", "{type: Q4_K, encoder: search}"));
  const std::string extends = "{extends: '" + folder.path("parent") + "'";
  CHECK(folder.write("mine", extends + "}").value().encoder == search_encoder());
  CHECK(folder.write("other", extends + ", encoder: reference}").value().encoder == reference_encoder());
}

TEST_CASE("a recipe file is named after its file name without extension") {
  const Recipe recipe = Folder().write("mine", "{type: Q4_K}").value();
  CHECK(recipe.name == "mine");
  CHECK(recipe.type == &type_named("Q4_K"));
  CHECK(recipe.rules.empty());
  CHECK_FALSE(recipe.file_type);
}

TEST_CASE("a recipe takes precedence over the recipe it extends") {
  const Folder folder;
  REQUIRE(folder.write("parent", "{type: Q4_K, file_type: 7, rules: [{class: head, type: Q6_K}], aliases: [old]}"));
  const Recipe recipe =
      folder.write("mine", "{extends: '" + folder.path("parent") + "', rules: [{class: attn_v, type: Q8_0}]}").value();
  CHECK(recipe.type == &type_named("Q4_K"));
  CHECK(recipe.file_type == 7u);
  CHECK(texts(recipe.rules) == Texts{"mine: class attn_v", "parent: class head"});
  CHECK(recipe.aliases.empty());
}

TEST_CASE("a recipe can extend a built-in recipe") {
  const Recipe recipe = Folder().write("mine", "{extends: Q4_K_M, type: Q5_K}").value();
  CHECK(recipe.type == &type_named("Q5_K"));
  CHECK(recipe.file_type == 15u);
  CHECK(texts(recipe.rules).back() == "mix: class head");
  CHECK(recipe.fallback.at(&type_named("Q4_K")) == &type_named("Q5_0"));
}

TEST_CASE("a chain of recipes that extend each other is limited to 32") {
  const Folder folder;
  write_text(folder.path("0"), "{type: Q4_K}");
  for (int i = 1; i <= 40; ++i)
    write_text(folder.path(std::to_string(i)), "{extends: '" + folder.path(std::to_string(i - 1)) + "'}");
  CHECK(find(folder.path("31")).value().type == &type_named("Q4_K"));
  for (const char* name : {"32", "40"}) {
    const auto recipe = find(folder.path(name));
    REQUIRE_FALSE(recipe);
    CHECK(recipe.error().code == ExitCode::kUsage);
    CHECK(recipe.error().what == "the chain of extended recipes of '" + folder.path(name) + "' is longer than 32");
  }
}

TEST_CASE("a recipe that extends itself is an error at the name that closes the cycle") {
  const Folder folder;
  write_text(folder.path("b"), "{extends: '" + folder.path("mine") + "'}");
  const Error error = folder.error("{type: Q4_K,\n extends: '" + folder.path("b") + "'}");
  CHECK(error.where == folder.path("b") + ":1:11");
  CHECK(error.what == "recipe '" + folder.path("mine") + "' extends itself through '" + folder.path("b") + "'");
}

TEST_CASE("a recipe that extends itself through a link is an error") {
  const Folder folder;
  fs::create_directory_symlink(".", fs::path(folder.path("mine")).parent_path() / "link");
  const Error error = folder.error("{type: Q4_K, extends: '" + folder.path("link/mine") + "'}");
  CHECK(error.what == "recipe '" + folder.path("link/mine") + "' extends itself through '" + folder.path("mine") + "'");
}

TEST_CASE("an unknown recipe to extend is an error with its position") {
  const Folder folder;
  const Error error = folder.error("{extends: Q9}");
  CHECK(error.where == folder.path("mine") + ":1:11");
  CHECK(error.what == "unknown recipe 'Q9'");
}

TEST_CASE("an unknown class is an error with its position") {
  const Folder folder;
  const Error error = folder.error("{type: Q4_K, rules: [{class: ffn_dwon, type: Q6_K}]}");
  CHECK(error.where == folder.path("mine") + ":1:30");
  CHECK(error.what.find("'ffn_dwon'") != std::string::npos);
  CHECK(error.help.find("did you mean 'ffn_down'?") != std::string::npos);
}

TEST_CASE("unknown types are errors, also as a fallback") {
  const Folder folder;
  CHECK(folder.error("{type: Q4_Q}").what == "unknown quantization type 'Q4_Q'");
  CHECK(folder.error("{type: Q4_K, fallback: {Q4_Q: Q4_0}}").what == "unknown quantization type 'Q4_Q'");
  CHECK(folder.error("{type: Q4_K, fallback: {Q4_K: Q4_Q}}").what == "unknown quantization type 'Q4_Q'");
}

TEST_CASE("an undefined model group is an error") {
  CHECK(Folder().error("{type: Q4_K, rules: [{model: big, type: Q6_K}]}").what ==
        "recipe 'mine' uses model group 'big', which is not defined");
}

TEST_CASE("a model group has conditions on models only") {
  const Folder folder;
  CHECK(folder.write("a", "{type: Q4_K, models: {big: [{layers: 80, arch: llama}]}}"));
  CHECK(folder.error("{type: Q4_K, models: {big: [{class: attn_v}]}}").what == "unknown key 'class'");
  CHECK(folder.error("{type: Q4_K, models: {big: [{model: big}]}}").what == "unknown key 'model'");
}

TEST_CASE("a recipe file that does not exist is an error") {
  const auto recipe = find("no/such/recipe.yaml");
  REQUIRE_FALSE(recipe);
  CHECK(recipe.error().where == "no/such/recipe.yaml");
}

TEST_CASE("a missing recipe file is an error at the first place that names it") {
  Diagnostics errors;
  for (const auto& [place, path] : {std::pair("a.yaml:1:2", "no/mine.yaml"),
                                    {"a.yaml:2:2", "no/mine.yaml"},
                                    {"a.yaml:3:2", "./no/mine.yaml"},
                                    {"a.yaml:4:2", "no/other.yaml"}})
    errors.add(RecipeCatalog().find(path, Origin{place, ""}).error());
  REQUIRE(errors.errors().size() == 2);
  CHECK(errors.errors()[0].where == "a.yaml:1:2");
  CHECK(errors.errors()[1].where == "a.yaml:4:2");
}

TEST_CASE("a file that is not YAML is an error with its position") {
  const Folder folder;
  CHECK(folder.error("{type: Q4_K").where.starts_with(folder.path("mine") + ":"));
}

TEST_CASE("a file larger than a recipe can be is refused") {
  CHECK(Folder().error("# " + std::string(2 << 20, 'x')).what.find("larger than 1 MiB") != std::string::npos);
}

TEST_CASE("the file type of a recipe is known by its names, not by its path") {
  const RecipeCatalog catalog;
  CHECK(catalog.file_type_of("Q4_K_M") == 15u);
  CHECK(catalog.file_type_of("Q4_K") == 15u);
  CHECK_FALSE(catalog.file_type_of("IQ9"));
  CHECK_FALSE(catalog.file_type_of("./a.yaml"));
}

TEST_CASE("interleaved rows have a file type of their own") {
  GGUFMILL_NEEDS("Q4_K_R4");
  CHECK(RecipeCatalog::interleaved_file_type(15) == 214);  // Q4_K_M
  CHECK(RecipeCatalog::interleaved_file_type(14) == 214);  // Q4_K_S
  CHECK(RecipeCatalog::interleaved_file_type(140) == 340);
  CHECK(RecipeCatalog::interleaved_file_type(32) == 32);  // BF16
  CHECK(RecipeCatalog::plain_file_type(214) == 15);
  CHECK(RecipeCatalog::plain_file_type(340) == 140);
  CHECK(RecipeCatalog::plain_file_type(15) == 15);
}

TEST_CASE("a rule's encoder is not one of its conditions") {
  const Recipe recipe = Folder().write("mine", "{rules: [{class: attn_v, type: Q8_0, encoder: search}]}").value();
  CHECK(texts(recipe.rules) == Texts{"mine: class attn_v"});
  CHECK(recipe.rules[0].encoder == search_encoder());
}

TEST_CASE("a recipe's encoder of a type replaces that of the recipe it extends") {
  const Folder folder;
  REQUIRE(folder.write("parent", "{type: Q4_K, encoders: {Q4_K: search, Q6_K: search}}"));
  const Recipe recipe =
      folder.write("mine", "{extends: '" + folder.path("parent") + "', encoders: {Q4_K: reference}}").value();
  CHECK(recipe.encoders.at(&type_named("Q4_K")).is_reference());
  CHECK(recipe.encoders.at(&type_named("Q6_K")) == search_encoder());
}

TEST_CASE("a recipe cannot ask for a search that its rule's type does not have") {
  CHECK(Folder().error("{rules: [{class: attn_v, type: TQ2_0, encoder: search}]}").what ==
        "there is no search for TQ2_0");
}

TEST_CASE("a recipe's heading is known by its name, not by the memory of the name") {
  std::string name = "made-up-a";
  CHECK(heading_of({name, "{description: the first}"}).description == "the first");
  name = "made-up-b";
  CHECK(heading_of({name, "{description: the second}"}).description == "the second");
}
