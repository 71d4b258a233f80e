#include "stages/metadata/value_of.h"

#include <cstdio>
#include <fstream>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

ConfigNode scalar(std::string text, bool quoted = false) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.scalar = std::move(text);
  node.quoted = quoted;
  return node;
}

ConfigNode list(std::vector<ConfigNode> items) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kList;
  node.items = std::move(items);
  return node;
}

ConfigNode map(const std::vector<std::pair<std::string, ConfigNode>>& entries) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kMap;
  for (const auto& [key, value] : entries) node.entries.push_back({key, {}, value});
  return node;
}

ConfigNode as(const std::string& type, ConfigNode value) {
  return map({{"type", scalar(type)}, {"value", std::move(value)}});
}

}  // namespace

TEST_CASE("untyped scalars find their type") {
  CHECK(metadata_value_of(scalar("true"), nullptr).value() == metadata_bool(true));
  CHECK(metadata_value_of(scalar("true", true), nullptr).value() == metadata_string("true"));
  CHECK(metadata_value_of(scalar("7"), nullptr).value() == metadata_unsigned(MetadataType::kUint32, 7));
  CHECK(metadata_value_of(scalar("-7"), nullptr).value().type == MetadataType::kInt32);
  CHECK(metadata_value_of(scalar("5000000000"), nullptr).value().type == MetadataType::kUint64);
  CHECK(metadata_value_of(scalar("-5000000000"), nullptr).value().type == MetadataType::kInt64);
  CHECK(metadata_value_of(scalar("0.5"), nullptr).value() == metadata_float(MetadataType::kFloat32, 0.5));
  CHECK(metadata_value_of(scalar("mit"), nullptr).value() == metadata_string("mit"));
}

TEST_CASE("a number keeps the type the key has") {
  const MetadataValue before = metadata_unsigned(MetadataType::kUint16, 1);
  CHECK(metadata_value_of(scalar("9"), &before).value() == metadata_unsigned(MetadataType::kUint16, 9));
  CHECK_FALSE(metadata_value_of(scalar("70000"), &before));
  const MetadataValue real = metadata_float(MetadataType::kFloat64, 1);
  CHECK(metadata_value_of(scalar("9"), &real).value() == metadata_float(MetadataType::kFloat64, 9));
}

TEST_CASE("every type can be written") {
  CHECK(metadata_value_of(as("int8", scalar("-128")), nullptr).value().bytes == "\x80");
  CHECK(metadata_value_of(as("uint64", scalar("18446744073709551615")), nullptr).value().bytes ==
        std::string(8, '\xff'));
  CHECK(metadata_value_of(as("string", scalar("1")), nullptr).value() == metadata_string("1"));
  CHECK(metadata_value_of(as("bool", scalar("false")), nullptr).value() == metadata_bool(false));
  CHECK(metadata_value_of(as("float64", scalar("1e300")), nullptr).value() ==
        metadata_float(MetadataType::kFloat64, 1e300));
}

TEST_CASE("values out of a type's range are refused") {
  CHECK_FALSE(metadata_value_of(as("int8", scalar("128")), nullptr));
  CHECK_FALSE(metadata_value_of(as("uint8", scalar("-1")), nullptr));
  CHECK_FALSE(metadata_value_of(as("uint8", scalar("x")), nullptr));
  CHECK_FALSE(metadata_value_of(as("int64", scalar("9223372036854775808")), nullptr));
  CHECK_FALSE(metadata_value_of(as("quux", scalar("1")), nullptr));
  CHECK_FALSE(metadata_value_of(as("array", scalar("1")), nullptr));
}

TEST_CASE("lists become arrays of the type that holds all") {
  const auto value = metadata_value_of(list({scalar("1"), scalar("2.5")}), nullptr).value();
  CHECK(value == metadata_array(MetadataType::kFloat32, {metadata_float(MetadataType::kFloat32, 1),
                                                         metadata_float(MetadataType::kFloat32, 2.5)}));
  CHECK(as_array(metadata_value_of(list({scalar("a"), scalar("1")}), nullptr).value())->element ==
        MetadataType::kString);
}

TEST_CASE("arrays of arrays need their type") {
  const ConfigNode nested = list({list({scalar("1")}), list({})});
  CHECK_FALSE(metadata_value_of(nested, nullptr));
  const auto value = metadata_value_of(as("uint8[][]", nested), nullptr).value();
  REQUIRE(array_items(value).size() == 2);
  CHECK(array_items(value)[0] == metadata_array(MetadataType::kUint8, {metadata_unsigned(MetadataType::kUint8, 1)}));
}

TEST_CASE("an empty list keeps the element type the key has") {
  const MetadataValue before = metadata_array(MetadataType::kInt16, {});
  CHECK(metadata_value_of(list({}), &before).value() == before);
  CHECK_FALSE(metadata_value_of(list({}), nullptr));
}

TEST_CASE("a file's bytes become a string") {
  const std::string path = "stage_metadata_value_of_test.txt";
  std::ofstream(path) << "{{ bos }}\n";
  CHECK(metadata_value_of(map({{"file", scalar(path)}}), nullptr).value() == metadata_string("{{ bos }}\n"));
  std::remove(path.c_str());
  CHECK_FALSE(metadata_value_of(map({{"file", scalar(path)}}), nullptr));
}
