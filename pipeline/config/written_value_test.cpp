#include "pipeline/config/written_value.h"

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

WrittenValue scalar_node(std::string text, bool quoted = false) { return {.text = std::move(text), .is_text = quoted}; }

WrittenValue list_node(std::vector<WrittenValue> items) {
  return {.kind = WrittenValue::Kind::kList, .items = std::move(items)};
}

}  // namespace

TEST_CASE("untyped scalars find their type") {
  CHECK(value_of(scalar_node("true"), nullptr).value() == metadata_bool(true));
  CHECK(value_of(scalar_node("true", true), nullptr).value() == metadata_string("true"));
  CHECK(value_of(scalar_node("7"), nullptr).value() == metadata_unsigned(MetadataType::kUint32, 7));
  CHECK(value_of(scalar_node("-7"), nullptr).value().type == MetadataType::kInt32);
  CHECK(value_of(scalar_node("5000000000"), nullptr).value().type == MetadataType::kUint64);
  CHECK(value_of(scalar_node("-5000000000"), nullptr).value().type == MetadataType::kInt64);
  CHECK(value_of(scalar_node("0.5"), nullptr).value() == metadata_float(MetadataType::kFloat32, 0.5));
  CHECK(value_of(scalar_node("mit"), nullptr).value() == metadata_string("mit"));
}

TEST_CASE("a number keeps the key's type") {
  const MetadataValue before = metadata_unsigned(MetadataType::kUint16, 1);
  CHECK(value_of(scalar_node("9"), &before).value() == metadata_unsigned(MetadataType::kUint16, 9));
  CHECK_FALSE(value_of(scalar_node("70000"), &before));
  const MetadataValue real = metadata_float(MetadataType::kFloat64, 1);
  CHECK(value_of(scalar_node("9"), &real).value() == metadata_float(MetadataType::kFloat64, 9));
}

TEST_CASE("every type can be written") {
  CHECK(value_of(scalar_node("-128"), "int8").value().bytes == "\x80");
  CHECK(value_of(scalar_node("18446744073709551615"), "uint64").value().bytes == std::string(8, '\xff'));
  CHECK(value_of(scalar_node("1"), "string").value() == metadata_string("1"));
  CHECK(value_of(scalar_node("false"), "bool").value() == metadata_bool(false));
  CHECK(value_of(scalar_node("1e300"), "float64").value() == metadata_float(MetadataType::kFloat64, 1e300));
}

TEST_CASE("values out of a type's range are refused") {
  CHECK_FALSE(value_of(scalar_node("128"), "int8"));
  CHECK_FALSE(value_of(scalar_node("-1"), "uint8"));
  CHECK_FALSE(value_of(scalar_node("x"), "uint8"));
  CHECK_FALSE(value_of(scalar_node("9223372036854775808"), "int64"));
  CHECK_FALSE(value_of(scalar_node("1"), "quux"));
  CHECK_FALSE(value_of(scalar_node("1"), "array"));
}

TEST_CASE("lists become arrays of a type that fits all items") {
  const auto value = value_of(list_node({scalar_node("1"), scalar_node("2.5")}), nullptr).value();
  CHECK(value == metadata_array(MetadataType::kFloat32, {metadata_float(MetadataType::kFloat32, 1),
                                                         metadata_float(MetadataType::kFloat32, 2.5)}));
  CHECK(as_array(value_of(list_node({scalar_node("a"), scalar_node("1")}), nullptr).value())->element ==
        MetadataType::kString);
}

TEST_CASE("arrays of arrays need their type") {
  const WrittenValue nested = list_node({list_node({scalar_node("1")}), list_node({})});
  CHECK_FALSE(value_of(nested, nullptr));
  const auto value = value_of(nested, "uint8[][]").value();
  REQUIRE(array_items(value).size() == 2);
  CHECK(array_items(value)[0] == metadata_array(MetadataType::kUint8, {metadata_unsigned(MetadataType::kUint8, 1)}));
}

TEST_CASE("an empty list keeps the key's element type") {
  const MetadataValue before = metadata_array(MetadataType::kInt16, {});
  CHECK(value_of(list_node({}), &before).value() == before);
  CHECK_FALSE(value_of(list_node({}), nullptr));
}
