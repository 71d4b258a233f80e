#include "stages/metadata/metadata_stage.h"

#include <fmt/format.h>

#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

Model model_of(const std::vector<std::string>& keys) {
  Model model;
  for (const std::string& key : keys) model.metadata.add(key, metadata_string("old"));
  return model;
}

}  // namespace

TEST_CASE("the metadata stage removes, then sets in place or at the end") {
  const Model after = apply_stage(metadata_stage(), "{set: {c: new, d: 1}, append: {b: last}, remove: [a, nowhere]}",
                                  model_of({"a", "b", "c"}))
                          .value();
  REQUIRE(after.metadata.entries().size() == 3);
  CHECK(after.metadata.entries()[0].key == "c");
  CHECK(as_string(after.metadata.entries()[0].value) == "new");
  CHECK(after.metadata.entries()[1].value == metadata_unsigned(MetadataType::kUint32, 1));
  CHECK(after.metadata.entries()[2].key == "b");
  CHECK(after.warnings.size() == 1);
}

TEST_CASE("only keys that the model has are replaced") {
  const Model after = apply_stage(metadata_stage(), "{replace: {a: new, b: new}}", model_of({"a", "c"})).value();
  REQUIRE(after.metadata.entries().size() == 2);
  CHECK(as_string(after.metadata.entries()[0].value) == "new");
  CHECK(as_string(after.metadata.entries()[1].value) == "old");
}

TEST_CASE("a program can set values without a pipeline file") {
  MetadataOptions options;
  options.set = {{"a", metadata_bool(true)}, {"b", WrittenValue{.text = "7"}}};
  const Model after = make_metadata_stage(std::move(options))->apply({}).value();
  CHECK(*after.metadata.find("a") == metadata_bool(true));
  CHECK(*after.metadata.find("b") == metadata_unsigned(MetadataType::kUint32, 7));
}

TEST_CASE("values keep the types of their keys, or have known types") {
  Model model;
  model.metadata.add("a.tags", metadata_array(MetadataType::kString, {}));
  model.metadata.add("a.name", metadata_string("old"));
  model.metadata.add("a.size", metadata_unsigned(MetadataType::kUint64, 1));
  const auto type_of = [&](const std::string& yaml, const char* key) {
    const auto after = apply_stage(metadata_stage(), yaml, model);
    return after ? full_type_name(*after.value().metadata.find(key)) : after.error().what;
  };
  CHECK(type_of("{set: {a.tags: [1, 2]}}", "a.tags") == "string[]");
  CHECK(type_of("{set: {a.tags: x}}", "a.tags") == "a.tags: expected a list of type string[]");
  CHECK(type_of("{set: {a.name: 1.0}}", "a.name") == "string");
  CHECK(type_of("{append: {a.size: 7}}", "a.size") == "uint64");
  CHECK(type_of("{replace: {a.size: x}}", "a.size") == "a.size: 'x' is not an integer, but uint64 needs one");
  CHECK(type_of("{set: {general.version: 1.0}}", "general.version") == "string");
  CHECK(type_of("{set: {b.rope.scaling.factor: 4}}", "b.rope.scaling.factor") == "float32");
}

TEST_CASE("a changed type and one that llama.cpp does not expect are reported") {
  Model model;
  model.metadata.add("llama.context_length", metadata_unsigned(MetadataType::kUint32, 1));
  const auto warning = [&](const std::string& value) {
    const auto after = apply_stage(metadata_stage(), "{set: {llama.context_length: " + value + "}}", model);
    return after.value().warnings.empty() ? "" : after.value().warnings.at(0);
  };
  CHECK(warning("2").empty());
  CHECK(warning("{type: uint64, value: 2}") ==
        "metadata key 'llama.context_length' changes from type uint32 to uint64");
  model.metadata.add("a.lists", metadata_array(MetadataType::kArray, {metadata_array(MetadataType::kBool, {})}));
  CHECK(apply_stage(metadata_stage(), "{set: {a.lists: []}}", model).value().warnings.empty());
  CHECK(warning("{type: str, value: 2}") ==
        "metadata key 'llama.context_length' changes from type uint32 to string; it has type string, but llama.cpp "
        "expects uint32");
}

TEST_CASE("a file contains a value of the key's type") {
  const TempDir folder;
  const std::string path = folder.file("value.txt");
  const auto apply = [&](const std::string& text, const std::string& key, const std::string& type) {
    write_text(path, text);
    return apply_stage(metadata_stage(), "{set: {" + key + ": {file: " + path + type + "}}}", {});
  };
  const auto type_of = [&](const std::string& text, const std::string& key, const std::string& type) {
    return full_type_name(*apply(text, key, type).value().metadata.find(key));
  };
  CHECK(type_of("[\"a\", \"b\"]\n", "general.tags", "") == "string[]");
  CHECK(type_of(" 4096\n", "llama.context_length", "") == "uint32");
  CHECK(type_of("[1]", "my.list", ", type: 'u8[]'") == "uint8[]");
  CHECK(type_of("[1]", "my.list", "") == "string");
  CHECK_FALSE(apply("many", "llama.context_length", ""));
  CHECK_FALSE(apply("\xff", "tokenizer.chat_template", ""));
  CHECK_FALSE(apply("1", "my.list", ", value: 2"));
}

TEST_CASE("the contents of a file become a string") {
  const TempDir folder;
  const std::string path = folder.file("template.txt");
  const std::string yaml = "{set: {a: {file: " + path + "}}}";
  CHECK_FALSE(apply_stage(metadata_stage(), yaml, {}));
  write_text(path, "{{ bos }}\n");
  const Model after = apply_stage(metadata_stage(), yaml, {}).value();
  CHECK(*after.metadata.find("a") == metadata_string("{{ bos }}\n"));
}

TEST_CASE("a text that is not UTF-8 is refused, with the key and the file") {
  const TempDir folder;
  const std::string path = folder.file("template.txt");
  write_text(path, "x\xff\xfe");
  const auto after = apply_stage(metadata_stage(), "{set: {a: {file: " + path + "}}}", {});
  REQUIRE(!after);
  CHECK(after.error().what == "the text is not UTF-8");
  CHECK(after.error().where == "a.yaml:1:18");
  MetadataOptions options;
  options.append = {{"a", WrittenValue{.text = "x\xff"}}};
  const auto written = make_metadata_stage(std::move(options))->apply({});
  REQUIRE(!written);
  CHECK(written.error().what == "a: the text is not UTF-8");
}

TEST_CASE("keys about shards have no effect, and a warning says so") {
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) {
    const auto after = apply_stage(metadata_stage(), fmt::format("{{set: {{{}: 5}}}}", key), {});
    REQUIRE(after);
    REQUIRE(after.value().warnings.size() == 1);
    CHECK(after.value().warnings[0].find("has no effect") != std::string::npos);
  }
}
