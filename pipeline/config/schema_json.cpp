#include "pipeline/config/schema_json.h"

#include <fmt/format.h>

#include "pipeline/config/yaml_reader.h"

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
         spec.kind == FieldKind::kTypeName || spec.kind == FieldKind::kEnum;
}

// One line; numbers as people write them, which boost::json does not.
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

}  // namespace

json::value json_of(const std::string& yaml, const FieldSpec& spec) {
  ConfigTexts texts;
  Diagnostics errors;
  std::optional<ConfigNode> node = read_yaml(yaml, "", texts, errors);
  if (!node) return nullptr;
  node->quoted = node->quoted || is_text(spec);
  return json_of(*node);
}

std::string pretty(const json::value& value) {
  std::string out;
  print(value, 0, out);
  return out;
}

}  // namespace ggufmill
