#include "pipeline/config/schema.h"

#include <boost/json.hpp>

#include "pipeline/config/job.h"
#include "pipeline/config/test_registry.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

// Returns the schema without its header and definitions, which are the same for all schemas.
std::string body(const FieldSpec& spec) {
  boost::json::object schema = boost::json::parse(json_schema(spec)).as_object();
  CHECK(schema.at("$schema").as_string() == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema.at("$defs").as_object().size() == 3);
  schema.erase("$schema");
  schema.erase("$defs");
  // erase() moves the last member into the gap; restores the order of keys for the comparison.
  std::string out;
  for (const char* key : {"description", "type", "enum", "anyOf", "minLength", "items", "minItems", "properties",
                          "additionalProperties", "required", "allOf", "$ref", "default", "examples"})
    if (const auto* value = schema.if_contains(key))
      out += std::string(key) + " " + boost::json::serialize(*value) + "\n";
  return out;
}

}  // namespace

TEST_CASE("each kind of field has its schema") {
  const std::string reference = R"({"$ref":"#/$defs/parameter"})";
  CHECK(body({.doc = "D."}) == "description \"D.\"\ntype [\"string\",\"number\",\"boolean\"]\n");
  CHECK(body({.kind = FieldKind::kPath}) == "type \"string\"\nminLength 1\n");
  CHECK(body({.kind = FieldKind::kBool, .default_text = "true"}) ==
        "anyOf [{\"type\":\"boolean\"}," + reference + "]\ndefault true\n");
  CHECK(body({.kind = FieldKind::kInteger, .example = "3", .minimum = 1, .maximum = 8}) ==
        "anyOf [{\"type\":\"integer\",\"minimum\":1,\"maximum\":8}," + reference + "]\nexamples [3]\n");
  CHECK(body({.kind = FieldKind::kEnum, .choices = {"a", "b"}}) ==
        "anyOf [{\"enum\":[\"a\",\"b\"]}," + reference + "]\n");
  CHECK(body({.kind = FieldKind::kTypeName}) == "$ref \"#/$defs/tensor_type\"\n");
  CHECK(body({.kind = FieldKind::kEncoderName}) == "$ref \"#/$defs/encoder\"\n");
  CHECK(body({.kind = FieldKind::kTypeName, .choices = {"keep"}}) ==
        "anyOf [{\"anyOf\":[{\"enum\":[\"keep\"]}," + reference + "]},{\"$ref\":\"#/$defs/tensor_type\"}]\n");
  CHECK(body({.kind = FieldKind::kAny, .doc = "D."}) == "description \"D.\"\n");
}

TEST_CASE("containers have the schema of their items") {
  const FieldSpec text{.name = "t", .required = true, .example = "007"};
  CHECK(body({.kind = FieldKind::kList, .item = {{}}, .minimum = 1}) ==
        "type \"array\"\nitems {\"type\":[\"string\",\"number\",\"boolean\"]}\nminItems 1\n");
  CHECK(body({.kind = FieldKind::kDictionary, .item = {{}}}) ==
        "type \"object\"\nadditionalProperties {\"type\":[\"string\",\"number\",\"boolean\"]}\n");
  CHECK(body({.kind = FieldKind::kMap, .fields = {text}}) ==
        "type \"object\"\nproperties {\"t\":{\"type\":[\"string\",\"number\",\"boolean\"],\"examples\":[\"007\"]}}\n"
        "additionalProperties false\nrequired [\"t\"]\n");
  CHECK(body({.kind = FieldKind::kOneOf, .alternatives = {{}, {.kind = FieldKind::kList, .item = {{}}}}}) ==
        "anyOf "
        "[{\"type\":[\"string\",\"number\",\"boolean\"]},{\"type\":\"array\",\"items\":{\"type\":[\"string\","
        "\"number\",\"boolean\"]}}]\n");
}

TEST_CASE("exactly one key of a group is required") {
  const FieldSpec a{.name = "a", .group = "g"}, b{.name = "b", .group = "g"};
  CHECK(body({.kind = FieldKind::kMap, .fields = {a, b}})
            .find("allOf [{\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}]\n") != std::string::npos);
}

TEST_CASE("sizes are strings with a unit or integers") {
  const std::string schema = body({.kind = FieldKind::kBytes, .minimum = 1 << 20});
  CHECK(schema.find(R"({"type":"integer","minimum":1048576})") != std::string::npos);
  CHECK(schema.find(R"("pattern":"^([0-9]+\\.?[0-9]*|\\.[0-9]+)([KMGT](i?B)?|B)?$")") != std::string::npos);
}

TEST_CASE("the schema of a job is printed readably, short values on one line") {
  const std::string schema = json_schema(job_fields(testing::make_registry()));
  CHECK(schema.substr(0, 115) ==
        "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
        "  \"description\": \"A ggufmill pipeline file.\",\n  \"typ");
  CHECK(schema.find("\n    \"limits\": {\n") != std::string::npos);
  CHECK(schema.find("\n  \"required\": [\"version\", \"outputs\"],\n") != std::string::npos);
  CHECK(schema.find("\"examples\": [0.5]") != std::string::npos);
  CHECK(schema.substr(schema.size() - 2) == "}\n");
}
