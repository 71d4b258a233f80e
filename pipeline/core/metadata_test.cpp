#include "pipeline/core/metadata.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("strings keep every byte") {
  const std::string text("a\0\xff", 3);
  CHECK(as_string(metadata_string(text)).value() == text);
}

TEST_CASE("integers come back with their sign") {
  CHECK(as_signed(metadata_unsigned(MetadataType::kInt8, static_cast<std::uint64_t>(-5))).value() == -5);
  CHECK(as_unsigned(metadata_unsigned(MetadataType::kUint64, ~0ull)).value() == ~0ull);
  CHECK_FALSE(as_unsigned(metadata_unsigned(MetadataType::kInt32, static_cast<std::uint64_t>(-1))));
  CHECK_FALSE(as_signed(metadata_unsigned(MetadataType::kUint64, ~0ull)));
}

TEST_CASE("a float is a number but not an integer") {
  const MetadataValue value = metadata_float(MetadataType::kFloat32, 0.5);
  CHECK(as_number(value).value() == 0.5);
  CHECK_FALSE(as_unsigned(value));
}

TEST_CASE("nested arrays are split into items") {
  const MetadataValue inner = metadata_array(MetadataType::kString, {metadata_string("x"), metadata_string("yz")});
  const MetadataValue outer = metadata_array(MetadataType::kArray, {inner, inner});
  const auto items = array_items(outer);
  REQUIRE(items.size() == 2);
  CHECK(items[1] == inner);
  CHECK(array_items(items[0])[1] == metadata_string("yz"));
}

TEST_CASE("a malformed array has no items") {
  MetadataValue value = metadata_array(MetadataType::kString, {metadata_string("abc")});
  value.bytes.pop_back();
  CHECK(array_items(value).empty());
}

TEST_CASE("set keeps the position, set_at_end moves the key") {
  Metadata metadata;
  for (const char* key : {"a", "b", "c"}) REQUIRE(metadata.add(key, metadata_bool(false)));
  metadata.set("a", metadata_bool(true));
  CHECK(metadata.entries()[0].key == "a");
  metadata.set_at_end("a", metadata_bool(false));
  CHECK(metadata.entries()[2].key == "a");
  CHECK_FALSE(metadata.add("b", metadata_bool(true)));
}

TEST_CASE("remove forgets the key and finds the others") {
  Metadata metadata;
  for (const char* key : {"a", "b", "c"}) metadata.add(key, metadata_string(key));
  CHECK(metadata.remove("b"));
  CHECK_FALSE(metadata.remove("b"));
  CHECK(metadata.find("b") == nullptr);
  CHECK(as_string(*metadata.find("c")).value() == "c");
}

TEST_CASE("values are described for people") {
  CHECK(describe(metadata_string("a\nb")) == "\"a\\nb\"");
  CHECK(describe(metadata_float(MetadataType::kFloat32, 1e-5)) == "1e-05");
  CHECK(describe(metadata_array(MetadataType::kBool, {metadata_bool(true)})) == "array of 1 bool: true");
}

TEST_CASE("texts in a value are UTF-8 or not, however deep they are") {
  const MetadataValue good = metadata_string("\u2581"), bad = metadata_string("x\xff");
  CHECK(is_utf8(good));
  CHECK_FALSE(is_utf8(bad));
  CHECK(is_utf8(metadata_unsigned(MetadataType::kUint32, 0xffffffff)));
  const MetadataValue list = metadata_array(MetadataType::kString, {good, bad});
  CHECK_FALSE(is_utf8(list));
  CHECK_FALSE(is_utf8(metadata_array(MetadataType::kArray, {metadata_array(MetadataType::kString, {good}), list})));
}

TEST_CASE("the full name of an array's type has that of its elements") {
  const MetadataValue texts = metadata_array(MetadataType::kString, {metadata_string("a")});
  const MetadataValue none = metadata_array(MetadataType::kInt8, {});
  CHECK(full_type_name(metadata_bool(true)) == "bool");
  CHECK(full_type_name(texts) == "string[]");
  CHECK(full_type_name(none) == "int8[]");
  CHECK(full_type_name(metadata_array(MetadataType::kArray, {none, texts})) == "string[][]");
  CHECK(full_type_name(metadata_array(MetadataType::kArray, {none})) == "int8[][]");
  CHECK(full_type_name(metadata_array(MetadataType::kArray, {})) == "array[]");
}
