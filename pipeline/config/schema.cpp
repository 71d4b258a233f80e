#include "pipeline/config/schema.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <map>

#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/type_family.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::size_t kOneLine = 100;

json::value json_of(const ConfigNode& node) {
  if (node.is_list()) {
    json::array out;
    for (const ConfigNode& item : node.items) out.push_back(json_of(item));
    return out;
  }
  if (node.is_map()) {
    json::object out;
    for (const ConfigNode::Entry& entry : node.entries) out[entry.key] = json_of(entry.value);
    return out;
  }
  if (!node.is_scalar()) return nullptr;
  if (node.quoted) return json::value(node.scalar);
  if (const Result<bool> truth = to_bool(node)) return truth.value();
  if (const Result<std::int64_t> whole = to_integer(node)) return whole.value();
  if (const Result<double> number = to_number(node)) return number.value();
  return json::value(node.scalar);
}

bool is_text(const FieldSpec& spec) {
  return spec.kind == FieldKind::kString || spec.kind == FieldKind::kPath || spec.kind == FieldKind::kRegex ||
         spec.kind == FieldKind::kTypeName || spec.kind == FieldKind::kEncoderName || spec.kind == FieldKind::kEnum;
}

// Formats a value on one line, with numbers in their natural form, which boost::json does not use.
std::string line_of(const json::value& value) {
  std::string out;
  if (value.is_object()) {
    for (const auto& [key, item] : value.get_object())
      out += (out.empty() ? "" : ", ") + json::serialize(json::value(key)) + ": " + line_of(item);
    return "{" + out + "}";
  }
  if (value.is_array()) {
    for (const json::value& item : value.get_array()) out += (out.empty() ? "" : ", ") + line_of(item);
    return "[" + out + "]";
  }
  return value.is_double() ? fmt::format("{}", value.get_double()) : json::serialize(value);
}

void print(const json::value& value, std::size_t depth, std::string& out) {
  std::string line = line_of(value);
  if (!value.is_structured() || line.size() <= kOneLine) {
    out += line;
    return;
  }
  const std::string indent(2 * depth + 2, ' ');
  const char* separator = "\n";
  const auto member = [&](const std::string& key, const json::value& item) {
    out += separator + indent + key;
    print(item, depth + 1, out);
    separator = ",\n";
  };
  out += value.is_object() ? "{" : "[";
  if (value.is_object())
    for (const auto& [key, item] : value.get_object()) member(json::serialize(json::value(key)) + ": ", item);
  else
    for (const json::value& item : value.get_array()) member("", item);
  out += "\n" + std::string(2 * depth, ' ') + (value.is_object() ? "}" : "]");
}

// Converts a default or an example of a field to the type of its schema; null if the text is not YAML.
json::value json_of(const std::string& yaml, const FieldSpec& spec) {
  ConfigTexts texts;
  Diagnostics errors;
  std::optional<ConfigNode> node = read_yaml(yaml, "", texts, errors);
  if (!node) return nullptr;
  node->quoted = node->quoted || is_text(spec);
  return json_of(*node);
}

// Indents by two spaces per level; short values stay on one line.
std::string pretty(const json::value& value) {
  std::string out;
  print(value, 0, out);
  return out;
}

// Returns the schema of a parameter, such as "${NAME}", which the lint accepts in place of a number or other value.
json::object parameter() {
  return {{"description", "A string that refers to a declared parameter."},
          {"type", "string"},
          {"pattern", "\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}"}};
}

// Lists the built-in names for completion; any other text may be the type of a kernel module.
json::object tensor_type() {
  json::array names;
  for (const TypeInfo& type : built_in_types())
    names.emplace_back(json::string_view(type.name.data(), type.name.size()));
  json::object out;
  out["anyOf"] = json::array{json::object{{"enum", std::move(names)}}, json::object{{"type", "string"}}};
  return out;
}

// Lists the names for completion; any other text may be an encoder of a kernel module.
json::object encoder_name() {
  json::array names;
  for (const EncoderMethod* method : Types().encoders()) names.emplace_back(method->name);
  for (const TypeFamily& family : type_families())
    if (!family.encoder.empty()) names.emplace_back(json::string_view(family.encoder.data(), family.encoder.size()));
  json::object out;
  out["anyOf"] = json::array{json::object{{"enum", std::move(names)}}, json::object{{"type", "string"}}};
  return out;
}

constexpr const char* kParameterReference = "#/$defs/parameter";
constexpr const char* kTypeReference = "#/$defs/tensor_type";
constexpr const char* kEncoderReference = "#/$defs/encoder";

json::object or_parameter(json::object schema) {
  json::object out;
  out["anyOf"] = json::array{std::move(schema), json::object{{"$ref", kParameterReference}}};
  return out;
}

json::value number(double value) {
  if (value == std::floor(value) && std::abs(value) < 0x1p53) return static_cast<std::int64_t>(value);
  return value;
}

json::object numeric(const FieldSpec& spec, const char* type) {
  json::object out{{"type", type}};
  if (std::isfinite(spec.minimum)) out["minimum"] = number(spec.minimum);
  if (std::isfinite(spec.maximum)) out["maximum"] = number(spec.maximum);
  return or_parameter(std::move(out));
}

json::object bytes(const FieldSpec& spec) {
  json::object text{{"type", "string"}, {"pattern", "^([0-9]+\\.?[0-9]*|\\.[0-9]+)([KMGT](i?B)?|B)?$"}};
  json::object plain{{"type", "integer"}, {"minimum", number(spec.minimum)}};
  json::object out;
  out["anyOf"] = json::array{std::move(text), std::move(plain), json::object{{"$ref", kParameterReference}}};
  return out;
}

json::object choices(const FieldSpec& spec) {
  json::array words;
  for (const std::string& choice : spec.choices) words.emplace_back(choice);
  return or_parameter({{"enum", std::move(words)}});
}

json::object type_name(const FieldSpec& spec) {
  json::object type{{"$ref", kTypeReference}};
  if (spec.choices.empty()) return type;
  json::object out;
  out["anyOf"] = json::array{choices(spec), std::move(type)};
  return out;
}

json::object schema_of(const FieldSpec& spec);

json::object list(const FieldSpec& spec) {
  json::object out{{"type", "array"}, {"items", schema_of(spec.item.front())}};
  if (spec.minimum > 0) out["minItems"] = number(spec.minimum);
  return out;
}

// Exactly one key of each group must be present.
json::array group_rules(const FieldSpec& spec) {
  std::map<std::string, json::array> groups;
  for (const FieldSpec& field : spec.fields)
    if (!field.group.empty()) groups[field.group].push_back(json::object{{"required", json::array{field.name}}});
  json::array rules;
  for (auto& [group, alternatives] : groups) rules.push_back(json::object{{"oneOf", std::move(alternatives)}});
  return rules;
}

json::object map(const FieldSpec& spec) {
  json::object properties;
  json::array required;
  for (const FieldSpec& field : spec.fields) {
    properties[field.name] = schema_of(field);
    if (field.required) required.emplace_back(field.name);
  }
  json::object out{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) out["required"] = std::move(required);
  if (json::array rules = group_rules(spec); !rules.empty()) out["allOf"] = std::move(rules);
  out["additionalProperties"] = false;
  return out;
}

json::object alternatives(const FieldSpec& spec) {
  json::array all;
  for (const FieldSpec& alternative : spec.alternatives) all.push_back(schema_of(alternative));
  return {{"anyOf", std::move(all)}};
}

json::object form_of(const FieldSpec& spec) {
  switch (spec.kind) {
    case FieldKind::kString:
      return {{"type", json::array{"string", "number", "boolean"}}};  // the lint accepts a plain 8192 as text
    case FieldKind::kRegex:
      return {{"type", "string"}};
    case FieldKind::kPath:
      return {{"type", "string"}, {"minLength", 1}};
    case FieldKind::kBool:
      return or_parameter({{"type", "boolean"}});
    case FieldKind::kInteger:
      return numeric(spec, "integer");
    case FieldKind::kNumber:
      return numeric(spec, "number");
    case FieldKind::kBytes:
      return bytes(spec);
    case FieldKind::kTypeName:
      return type_name(spec);
    case FieldKind::kEncoderName:
      return {{"$ref", kEncoderReference}};
    case FieldKind::kEnum:
      return choices(spec);
    case FieldKind::kAny:
      return {};
    case FieldKind::kList:
      return list(spec);
    case FieldKind::kMap:
      return map(spec);
    case FieldKind::kDictionary:
      return {{"type", "object"}, {"additionalProperties", schema_of(spec.item.front())}};
    case FieldKind::kOneOf:
      return alternatives(spec);
  }
  return {};
}

json::object schema_of(const FieldSpec& spec) {
  json::object out;
  if (!spec.doc.empty()) out["description"] = spec.doc;
  for (auto& [key, value] : form_of(spec)) out[key] = value;
  if (!spec.default_text.empty()) out["default"] = json_of(spec.default_text, spec);
  if (!spec.example.empty()) out["examples"] = json::array{json_of(spec.example, spec)};
  return out;
}

}  // namespace

std::string json_schema(const FieldSpec& fields) {
  json::object root{{"$schema", "https://json-schema.org/draft/2020-12/schema"}};
  for (auto& [key, value] : schema_of(fields)) root[key] = value;
  root["$defs"] = json::object{{"parameter", parameter()}, {"tensor_type", tensor_type()}, {"encoder", encoder_name()}};
  return pretty(root) + "\n";
}

}  // namespace ggufmill
