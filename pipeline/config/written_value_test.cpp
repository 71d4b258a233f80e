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
  CHECK(value_of(scalar_node("true")).value() == metadata_bool(true));
  CHECK(value_of(scalar_node("true", true)).value() == metadata_string("true"));
  CHECK(value_of(scalar_node("7")).value() == metadata_unsigned(MetadataType::kUint32, 7));
  CHECK(value_of(scalar_node("-7")).value().type == MetadataType::kInt32);
  CHECK(value_of(scalar_node("5000000000")).value().type == MetadataType::kUint64);
  CHECK(value_of(scalar_node("-5000000000")).value().type == MetadataType::kInt64);
  CHECK(value_of(scalar_node("0.5")).value() == metadata_float(MetadataType::kFloat32, 0.5));
  CHECK(value_of(scalar_node("mit")).value() == metadata_string("mit"));
}

TEST_CASE("a value keeps the key's type") {
  const auto as = [](const WrittenValue& written, const MetadataValue& before) {
    return value_for("a.key", written, &before);
  };
  const MetadataValue before = metadata_unsigned(MetadataType::kUint16, 1);
  CHECK(as(scalar_node("9"), before).value() == metadata_unsigned(MetadataType::kUint16, 9));
  CHECK(as(scalar_node("9", true), before).value() == metadata_unsigned(MetadataType::kUint16, 9));
  CHECK(as(scalar_node("70000"), before).error().what == "a.key: 70000 does not fit uint16: 0 to 65535");
  CHECK(as(scalar_node("x"), before).error().help ==
        "it has type uint16; to give it another type, write a.key:TYPE as the key");
  CHECK_FALSE(as(list_node({scalar_node("1")}), before));
  const MetadataValue real = metadata_float(MetadataType::kFloat64, 1);
  CHECK(as(scalar_node("9"), real).value() == metadata_float(MetadataType::kFloat64, 9));
  CHECK(as(scalar_node("7"), metadata_string("x")).value() == metadata_string("7"));
  CHECK(as(scalar_node("true"), metadata_string("x")).value() == metadata_string("true"));
}

TEST_CASE("a list keeps the element type of the key") {
  const MetadataValue ints = metadata_array(MetadataType::kInt16, {});
  const auto as = [](const WrittenValue& written, const MetadataValue& before) {
    return value_for("a.key", written, &before);
  };
  CHECK(full_type_name(as(list_node({scalar_node("1")}), ints).value()) == "int16[]");
  CHECK(as(list_node({}), ints).value() == ints);
  CHECK_FALSE(as(list_node({scalar_node("a")}), ints));
  CHECK_FALSE(as(list_node({scalar_node("0.5")}), ints));
  CHECK(as(scalar_node("1"), ints).error().help == "write [1]");
  const MetadataValue nested = metadata_array(MetadataType::kArray, {ints});
  CHECK(full_type_name(as(list_node({list_node({scalar_node("1")})}), nested).value()) == "int16[][]");
}

TEST_CASE("a new key that is known has its known type") {
  CHECK(value_for("general.version", scalar_node("1.0"), nullptr).value() == metadata_string("1.0"));
  CHECK(value_for("x.rope.scaling.factor", scalar_node("4"), nullptr).value() ==
        metadata_float(MetadataType::kFloat32, 4));
  CHECK(value_for("x.expert_count", scalar_node("x"), nullptr).error().help ==
        "it is known as uint32; to give it another type, write x.expert_count:TYPE as the key");
  CHECK(full_type_name(value_for("general.tags", list_node({}), nullptr).value()) == "string[]");
  CHECK(value_for("my.key", scalar_node("7"), nullptr).value() == metadata_unsigned(MetadataType::kUint32, 7));
}

TEST_CASE("an argument can contain a list as JSON or YAML") {
  const auto as = [](std::string text, std::string_view type) {
    return value_of({.text = std::move(text), .may_be_list = true}, type);
  };
  const MetadataValue texts = metadata_array(MetadataType::kString, {metadata_string("a"), metadata_string("1.0")});
  CHECK(as(R"(["a", "1.0"])", "string[]").value() == texts);
  CHECK(as("[a, 1.0]", "[str]").value() == texts);
  CHECK(as(R"(["\ud83d\ude00"])", "[str]").value() ==
        metadata_array(MetadataType::kString, {metadata_string("\xf0\x9f\x98\x80")}));
  CHECK(full_type_name(as("[[1], []]", "u8[][]").value()) == "uint8[][]");
  CHECK(full_type_name(as("[[1], []]", "[[u8]]").value()) == "uint8[][]");
  CHECK_FALSE(as("[a", "string[]"));
  CHECK_FALSE(as("a", "string[]"));
  CHECK_FALSE(as("[{}]", "string[]"));
  CHECK_FALSE(as("[null]", "string[]"));
  CHECK(as("[a]", "string").value() == metadata_string("[a]"));
  CHECK(full_type_name(value_of({.text = "[1, 2]", .may_be_list = true}).value()) == "uint32[]");
  CHECK(value_of({.text = "[INST] hello", .may_be_list = true}).value() == metadata_string("[INST] hello"));
  CHECK_FALSE(value_of(scalar_node("[1]"), "int8[]"));
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
  CHECK_FALSE(value_of(scalar_node("1"), "[u8"));
  CHECK_FALSE(value_of(scalar_node("1"), "u8]"));
  CHECK_FALSE(value_of(scalar_node("nan"), "float32"));
  CHECK_FALSE(value_of(scalar_node("-inf"), "float64"));
  CHECK_FALSE(value_of(scalar_node("1e39"), "float32"));
  CHECK_FALSE(value_of(scalar_node("\xff"), "string"));
  CHECK(value_of(scalar_node("inf")).value() == metadata_string("inf"));
}

TEST_CASE("lists become arrays of a type that fits all items") {
  const auto value = value_of(list_node({scalar_node("1"), scalar_node("2.5")})).value();
  CHECK(value == metadata_array(MetadataType::kFloat32, {metadata_float(MetadataType::kFloat32, 1),
                                                         metadata_float(MetadataType::kFloat32, 2.5)}));
  CHECK(as_array(value_of(list_node({scalar_node("a"), scalar_node("1")})).value())->element == MetadataType::kString);
}

TEST_CASE("arrays of arrays need their type") {
  const WrittenValue nested = list_node({list_node({scalar_node("1")}), list_node({})});
  CHECK_FALSE(value_of(nested));
  const auto value = value_of(nested, "uint8[][]").value();
  REQUIRE(array_items(value).size() == 2);
  CHECK(array_items(value)[0] == metadata_array(MetadataType::kUint8, {metadata_unsigned(MetadataType::kUint8, 1)}));
}

TEST_CASE("an empty list of an unknown key needs a type") { CHECK_FALSE(value_of(list_node({}))); }
