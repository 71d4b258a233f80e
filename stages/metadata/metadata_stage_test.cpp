#include "stages/metadata/metadata_stage.h"

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
  CHECK(after.error().what == "the value of metadata key 'a' is not UTF-8: it is the text of '" + path + "'");
  MetadataOptions options;
  options.append = {{"a", WrittenValue{.text = "x\xff"}}};
  const auto written = make_metadata_stage(std::move(options))->apply({});
  REQUIRE(!written);
  CHECK(written.error().what == "the value of metadata key 'a' is not UTF-8");
}
