// Tests of metadata rules.
#include "stages/huggingface/map/metadata_rules.h"

#include <boost/json/parse.hpp>
#include <limits>

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

// Returns the entries that one rule makes, as "key type value" lines, or the error.
std::string made(const std::string& rule, const std::string& config) {
  const TempDir folder;
  write_text(folder.file("a.yaml"), "name: m\nlayers: n\nmetadata:\n  - " + rule + "\n");
  const auto architecture = read_architecture(folder.file("a.yaml"));
  if (!architecture) return render(architecture.error());
  const Facts facts("folder", boost::json::parse(config).as_object(), architecture.value().values);
  Metadata metadata;
  if (const Status status = set_metadata(architecture.value().metadata, architecture.value(), facts, metadata); !status)
    return status.error().what;
  std::string text;
  for (const MetadataEntry& entry : metadata.entries())
    text += entry.key + " " + std::string(metadata_type_name(entry.value.type)) + " " + describe(entry.value);
  return text;
}

}  // namespace

TEST_CASE("entries have the type of their rule if the value fits it") {
  CHECK(made("{key: a, value: x}", R"({"x": 4294967295})") == "m.a uint32 4294967295");
  CHECK(made("{key: general.a, value: x}", R"({"x": 1})") == "general.a uint32 1");
  CHECK(made("{key: xielu.a, value: x}", R"({"x": 1})") == "xielu.a uint32 1");
  CHECK(made("{key: .a.b, value: x}", R"({"x": 1})") == "a.b uint32 1");
  CHECK(made("{key: a, type: int32, value: x}", R"({"x": -5})") == "m.a int32 -5");
  CHECK(made("{key: a, type: uint64, value: x}", R"({"x": 4294967296})") == "m.a uint64 4294967296");
  CHECK(made("{key: a, type: float32, value: x}", R"({"x": 1})") == "m.a float32 1");
  CHECK(made("{key: a, type: bool, value: x}", R"({"x": 1})") == "m.a bool true");
  CHECK(made("{key: a, type: string, value: x}", R"({"x": "y"})") == "m.a string \"y\"");
}

TEST_CASE("values of the wrong type are errors that name value, type, and key") {
  const std::tuple<std::string, std::string, std::string> kCases[] = {
      {"uint32", "-1", "x is -1; expected an integer from 0 to 2^32 - 1"},
      {"uint32", "4294967296", "x is 4294967296; expected an integer from 0 to 2^32 - 1"},
      {"uint32", "9223372036854775808", "x is 9223372036854775808; expected an integer from 0 to 2^32 - 1"},
      {"uint32", "1e300", "x is 1e+300; expected an integer from 0 to 2^32 - 1"},
      {"uint32", "1.5", "x is 1.5; expected an integer from 0 to 2^32 - 1"},
      {"uint32", "\"7\"", "x is \"7\", a string; expected an integer"},
      {"uint32", "{}", "x is {}, an object; expected an integer"},
      {"int32", "2147483648", "x is 2147483648; expected an integer from -2^31 to 2^31 - 1"},
      {"uint64", "-1", "x is -1; expected an integer from 0 to 2^63 - 1"},
      {"float32", "1e300", "x is 1e+300; expected a number that float32 can represent"},
      {"float32", "true", "x is true; expected a number"},
      {"bool", "\"yes\"", "x is \"yes\", a string; expected true or false"},
      {"string", "1", "x is 1; expected a string"},
      {"uint32", "[1, \"a\"]", "x is [1,\"a\"], a list; expected a list of values of one type, in its range"},
      {"uint32", "[[1]]", "x is [[1]], a list; expected a list of values of one type, in its range"},
      {"uint32", "[4294967296]", "x is [4294967296], a list; expected a list of values of one type, in its range"},
  };
  for (const auto& [type, value, what] : kCases) {
    CAPTURE(type, value);
    CHECK(made("{key: a, type: " + type + ", value: x}", "{\"x\": " + value + "}") == what);
  }
}

TEST_CASE("lists, empty values and missing ones") {
  CHECK(made("{key: a, value: x}", R"({"x": [1, 2]})") == "m.a array array of 2 int32: 1, 2");
  CHECK(made("{key: a, value: x}", R"({"x": [true]})") == "m.a array array of 1 bool: true");
  CHECK(made("{key: a, value: x}", R"({"x": ["y"]})") == "m.a array array of 1 string: \"y\"");
  CHECK(made("{key: a, type: string, value: x}", R"({"x": ""})").empty());
  CHECK(made("{key: a, value: x}", R"({"x": []})") == "x is [], a list; expected values");
  CHECK(made("{key: a, value: x, optional: true}", R"({"x": []})").empty());
  CHECK(made("{key: a, value: [x, y]}", "{}") == "'x' or 'y' is missing");
  CHECK(made("{key: a, value: [x, y], optional: true}", "{}").empty());
  CHECK(made("{key: a, value: [x, y], when: {present: x}}", "{}").empty());
}

TEST_CASE("the numbers of a list of float32 may be written as integers") {
  CHECK(made("{key: a, type: float32, value: x}", R"({"x": [1, 0.5]})") == "m.a array array of 2 float32: 1, 0.5");
}

TEST_CASE("the numbers of a list of uint64 are") {
  CHECK(made("{key: a, type: uint64, value: x}", R"({"x": [23456789012345, 1]})") ==
        "m.a array array of 2 uint64: 23456789012345, 1");
  CHECK(made("{key: a, type: uint64, value: x}", R"({"x": [-1]})") ==
        "x is [-1], a list; expected a list of values of one type, in its range");
}

TEST_CASE("each member of an object is an entry, in its order") {
  const std::string rule = "{key: a, type: float32, value: x, by_member: true}";
  CHECK(made(rule, R"({"x": {"d.e": 1, "b": 0.5}})") == "m.a.d.e float32 1m.a.b float32 0.5");
  CHECK(made(rule, R"({"x": {}})").empty());
  CHECK(made(rule, R"({"x": {"b": "c"}})") == "'\"c\"' is not a valid float32 for m.a.b");
}

TEST_CASE("NaN, infinity, and numbers that float32 cannot hold are not written") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double number : {1e300, -1e300, infinity, -infinity}) {
    const TempDir folder;
    write_text(folder.file("a.yaml"),
               "name: m\nlayers: n\nmetadata: [{key: a, type: float32, value: x}, {key: b, type: float32, value: "
               "{list: [x]}}]\n");
    const Architecture map = read_architecture(folder.file("a.yaml")).value();
    const Facts facts("folder", {{"x", number}}, map.values);
    Metadata metadata;
    CHECK_FALSE(set_metadata({map.metadata.data(), map.metadata.data() + 1}, map, facts, metadata));
    CHECK_FALSE(set_metadata({map.metadata.data() + 1, map.metadata.data() + 2}, map, facts, metadata));
  }
  CHECK(made("{key: a, type: float32, value: inf, infinite: true}", "{}") == "m.a float32 inf");
  CHECK(made("{key: a, type: float32, value: nan, infinite: true}", "{}") == "'NaN' is not a valid float32 for m.a");
  CHECK(made("{key: a, type: float32, value: nan}", "{}") == "'NaN' is not a valid float32 for m.a");
  CHECK(made("{key: a, type: float32, value: {list: [1, nan]}}", "{}") ==
        "'[1,NaN]' is not a valid list of a single type for m.a");
}

TEST_CASE("an error names the file that the value comes from") {
  const TempDir folder;
  write_text(folder.file("a.yaml"),
             "name: m\nlayers: n\nvalues: {mean: {of_length: [other.x, 3]}}\n"
             "metadata: [{key: a, type: float32, value: mean}]\n");
  const auto architecture = read_architecture(folder.file("a.yaml")).value();
  const auto where = [&](const char* other) {
    Facts facts("folder", {}, architecture.values);
    facts.set("other", boost::json::parse(other), "folder/other.json");
    Metadata metadata;
    return set_metadata(architecture.metadata, architecture, facts, metadata).error().where;
  };
  CHECK(where(R"({"x": ["a", 1, 2]})") == "folder/other.json");  // by the entry
  CHECK(where(R"({"x": 0.5})") == "folder/other.json");          // by a function
}

TEST_CASE("null is false where a boolean is read by name") {
  const std::string rule = "{key: a, type: bool, value: x}";
  CHECK(made(rule, R"({"x": null})") == "m.a bool false");
  CHECK(made("{key: a, type: bool, value: [y, x]}", R"({"x": null})") == "m.a bool false");
  CHECK(made(rule, "{}") == "'x' is missing");
  CHECK(made("{key: a, type: bool, value: x, optional: true}", R"({"x": null})").empty());
  CHECK(made("{key: a, value: x}", R"({"x": null})") == "'x' is missing");
}

TEST_CASE("checkpoints of one class can have different names") {
  const auto name = [](const std::string& config) {
    const TempDir folder;
    write_text(folder.file("a.yaml"),
               "name: m\nlayers: n\nother_names: [{name: m-moe, when: experts}, {name: m-long, when: long}]\n");
    auto architecture = read_architecture(folder.file("a.yaml"));
    REQUIRE(architecture);
    const Facts facts("folder", boost::json::parse(config).as_object(), architecture.value().values);
    REQUIRE(choose_name(architecture.value(), facts));
    return architecture.value().name;
  };
  CHECK(name("{}") == "m");
  CHECK(name(R"({"long": true})") == "m-long");
  CHECK(name(R"({"experts": 4, "long": true})") == "m-moe");
}

TEST_CASE("the tokenizer's options") {
  const auto options = [](const std::string& yaml, const std::string& config) {
    const TempDir folder;
    write_text(folder.file("a.yaml"), "name: m\nlayers: n\ntokenizer: " + yaml + "\n");
    const auto architecture = read_architecture(folder.file("a.yaml"));
    REQUIRE(architecture);
    const Facts facts("folder", boost::json::parse(config).as_object(), architecture.value().values);
    return tokenizer_options(architecture.value().tokenizer, facts);
  };
  const auto some =
      options("{readers: [{reader: bpe, when: x}, {reader: tiktoken, pre: p}], vocabulary_size: v}", R"({"v": 9})");
  REQUIRE(some);
  REQUIRE(some.value().readers.size() == 1);
  CHECK(some.value().readers[0].reader == TokenizerReader::kTiktoken);
  CHECK(some.value().readers[0].pre == "p");
  CHECK(some.value().vocabulary_size == 9);
  const auto prefix =
      options("{space_prefix_of_config: {not: x}, readers: [{reader: tekken, own_format: true}]}", "{}");
  REQUIRE(prefix);
  CHECK(prefix.value().space_prefix_of_config);
  CHECK(prefix.value().readers[0].own_format);
  const auto wrong = options("{vocabulary_size: v}", R"({"v": -9})");
  REQUIRE(!wrong);
  CHECK(wrong.error().what == "v is -9; expected an integer from 0 to 2^63 - 1");
  const auto types = options("{token_types: v}", R"({"v": 4294967296})");
  REQUIRE(!types);
  CHECK(types.error().what == "the number of token types is 4294967296");
}
