#include "stages/huggingface/model_type.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "pipeline/config/yaml_reader.h"
#include "pipeline/io/json_file.h"
#include "stages/huggingface/architecture.h"
#include "stages/huggingface/values.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr int kDeepestPart = 8;

// A nested configuration: that of the text model, in a checkpoint of several models.
struct Part {
  std::string key;
  std::string type;                   // model type; empty: as the part states
  std::string default_type;           // model type if the part states none
  json::object defaults;              // values that the outer class passes for missing keys
  bool takes_all_if_missing = false;  // a missing part is made from the sibling keys
};

using Rules = std::vector<std::pair<std::string, ValueRule>>;  // in order; each key once

struct ModelType {
  bool is_partial = false;
  Rules defaults, where_null, always;
  std::vector<ValueRule> refuses;
  std::vector<std::string> drops;
  std::vector<std::pair<std::string, std::string>> other_names;
  std::vector<Part> parts;
};

const BuiltInModelType* built_in(std::string_view name) {
  const auto found = std::ranges::find(built_in_model_types(), name, &BuiltInModelType::name);
  return found == built_in_model_types().end() ? nullptr : &*found;
}

Status read_rules(const ConfigNode& root, std::string_view name, Rules& into) {
  const ConfigNode* node = root.find(name);
  if (!node) return ok();
  for (const ConfigNode::Entry& entry : node->entries) {
    std::erase_if(into, [&](const auto& rule) { return rule.first == entry.key; });
    BOOST_OUTCOME_TRY(ValueRule rule, read_value_rule(entry.value));
    into.emplace_back(entry.key, std::move(rule));
  }
  return ok();
}

Result<Part> read_part(const std::string& key, const ConfigNode& node) {
  Part part;
  part.key = key;
  if (const ConfigNode* type = node.find("type")) part.type = type->scalar;
  if (const ConfigNode* type = node.find("default_type")) part.default_type = type->scalar;
  if (const ConfigNode* flag = node.find("takes_all_if_missing")) {
    BOOST_OUTCOME_TRY(part.takes_all_if_missing, to_bool(*flag));
  }
  Rules defaults;
  BOOST_OUTCOME_TRY(read_rules(node, "defaults", defaults));
  for (const auto& [name, rule] : defaults) part.defaults[name] = rule.constant;
  return part;
}

Status read_into(const BuiltInModelType& file, ModelType& into) {
  Diagnostics errors;
  const auto document = read_document(file.text, std::string(file.name) + ".yaml", errors);
  if (document) lint(document->root, model_type_fields(), errors);
  if (!errors.empty()) return errors.together();
  const ConfigNode& root = document->root;
  if (const ConfigNode* parents = root.find("extends"))
    for (const ConfigNode& parent : parents->items) {
      const BuiltInModelType* const other = built_in(parent.scalar);
      if (!other) return error_at(parent, "unknown model type '" + parent.scalar + "'");
      BOOST_OUTCOME_TRY(read_into(*other, into));
    }
  into.is_partial = false;
  if (const ConfigNode* flag = root.find("partial")) {
    BOOST_OUTCOME_TRY(into.is_partial, to_bool(*flag));
  }
  BOOST_OUTCOME_TRY(read_rules(root, "defaults", into.defaults));
  BOOST_OUTCOME_TRY(read_rules(root, "where_null", into.where_null));
  BOOST_OUTCOME_TRY(read_rules(root, "always", into.always));
  if (const ConfigNode* refuses = root.find("refuses"))
    for (const ConfigNode& node : refuses->items) {
      BOOST_OUTCOME_TRY(into.refuses.emplace_back(), read_value_rule(node));
    }
  if (const ConfigNode* keys = root.find("drops"))
    for (const ConfigNode& key : keys->items) into.drops.push_back(key.scalar);
  if (const ConfigNode* names = root.find("other_names"))
    for (const ConfigNode::Entry& entry : names->entries) into.other_names.emplace_back(entry.key, entry.value.scalar);
  if (const ConfigNode* parts = root.find("parts"))
    for (const ConfigNode::Entry& entry : parts->entries) {
      BOOST_OUTCOME_TRY(into.parts.emplace_back(), read_part(entry.key, entry.value));
    }
  return ok();
}

// Returns nullopt if the name is unknown. Partial model types are visible only to other files.
Result<std::optional<ModelType>> find_model_type(const std::string& name, bool asked_by_file) {
  const BuiltInModelType* const file = built_in(name);
  if (!file) return std::optional<ModelType>();
  ModelType type;
  BOOST_OUTCOME_TRY(read_into(*file, type));
  if (type.is_partial && !asked_by_file) return std::optional<ModelType>();
  return std::optional<ModelType>(std::move(type));
}

// Returns the keys of `config`, without its parts, as the class sets them; nullopt if the class refuses a value. A
// value that cannot be computed counts as refused.
std::optional<json::object> with_values(const ModelType& type, const std::filesystem::path& folder,
                                        json::object config) {
  static const std::map<std::string, ValueRule> kNoValues;
  Facts facts(folder, std::move(config), kNoValues);
  const auto set = [&](const std::string& key, const ValueRule& rule, bool is_needed) {
    auto value = facts.evaluate(rule);
    if (!value || (is_needed && value.value().is_null())) return false;
    facts.add_to_config(key, std::move(value).value());
    return true;
  };
  const auto is_computed = [](const ValueRule& rule) { return rule.kind == ValueRule::Kind::kCall; };
  for (const auto& [key, rule] : type.defaults)
    if (!facts.config().contains(key) && !set(key, rule, is_computed(rule))) return {};
  for (const auto& [key, rule] : type.where_null) {
    const json::value* const value = facts.config().if_contains(key);
    if ((!value || value->is_null()) && !set(key, rule, is_computed(rule))) return {};
  }
  for (const auto& [key, rule] : type.always)
    if (!set(key, rule, false)) return {};
  for (const ValueRule& rule : type.refuses) {
    const auto refused = facts.holds(rule);
    if (!refused || refused.value()) return {};
  }
  json::object result = facts.config();
  for (const std::string& key : type.drops) result.erase(key);
  for (const auto& [other, key] : type.other_names)
    if (const json::value* value = result.if_contains(other)) {
      result[key] = json::value(*value);
      result.erase(other);
    }
  return result;
}

Result<std::optional<json::object>> completed(const std::string& type_name, bool asked_by_file,
                                              const std::filesystem::path& folder, const json::object& config,
                                              int depth);

// Returns the completed configuration of a part of `config`.
Result<std::optional<json::object>> completed_part(const Part& part, const std::filesystem::path& folder,
                                                   const json::object& config, int depth) {
  const json::value* const own = config.if_contains(part.key);
  json::object members;
  if (own && own->is_object())
    members = own->get_object();
  else if (own && !own->is_null())
    return std::optional<json::object>();
  else if (part.takes_all_if_missing)
    members = config;
  members.erase(part.key);
  std::string type = part.type;
  if (type.empty()) {
    const json::value* const own_type = members.if_contains("model_type");
    if (own_type && !own_type->is_string()) return std::optional<json::object>();
    type = own_type ? std::string(own_type->get_string()) : part.default_type;
  }
  for (const auto& each : part.defaults)
    if (!members.contains(each.key())) members[each.key()] = each.value();
  members["model_type"] = type;
  return completed(type, !part.type.empty(), folder, members, depth + 1);
}

Result<std::optional<json::object>> completed(const std::string& type_name, bool asked_by_file,
                                              const std::filesystem::path& folder, const json::object& config,
                                              int depth) {
  if (depth > kDeepestPart) return std::optional<json::object>();
  BOOST_OUTCOME_TRY(const auto type, find_model_type(type_name, asked_by_file));
  if (!type) return std::optional<json::object>();
  json::object alone = config;
  for (const Part& part : type->parts) alone.erase(part.key);
  // Facts would merge the members of a text model into the whole model's.
  json::object aside;
  for (const std::string_view key : text_model_keys())
    if (const json::value* value = alone.if_contains(key)) {
      aside[key] = *value;
      alone.erase(key);
    }
  auto result = with_values(*type, folder, std::move(alone));
  if (!result) return result;
  for (const auto& each : aside) (*result)[each.key()] = each.value();
  for (const Part& part : type->parts) {
    BOOST_OUTCOME_TRY(auto made, completed_part(part, folder, config, depth));
    if (!made) return made;
    (*result)[part.key] = std::move(*made);
  }
  return result;
}

FieldSpec dictionary(std::string name, FieldSpec item, std::string doc) {
  FieldSpec field{std::move(name), FieldKind::kDictionary, std::move(doc)};
  field.item = {std::move(item)};
  return field;
}

}  // namespace

FieldSpec model_type_fields() {
  const FieldSpec value{"", FieldKind::kAny, "A value."}, name{"", FieldKind::kString, "Name."};
  FieldSpec part{"", FieldKind::kMap, "A part."};
  part.fields = {{"type", FieldKind::kString, "Model type, overriding its own."},
                 {"default_type", FieldKind::kString, "Model type if it has none."},
                 dictionary("defaults", value, "Constants for missing keys, applied before those of its model type."),
                 {"takes_all_if_missing", FieldKind::kBool, "Take the sibling keys if it is missing."}};
  FieldSpec fields{"model_type", FieldKind::kMap, "How transformers completes a config.json of a model type."};
  fields.fields = {
      {"class", FieldKind::kString, "transformers configuration class."},
      list_of("extends", name, "Other files by name; rules here come after theirs and replace those for the same key."),
      {"partial", FieldKind::kBool, "Can only be extended."},
      dictionary("defaults", value, "Values of missing keys, in order."),
      dictionary("where_null", value, "Values of keys that are null or still missing, in order."),
      dictionary("always", value, "Values that replace those of the keys, in order."),
      list_of("refuses", value, "Conditions under which config.json is read as is."),
      list_of("drops", name, "Keys that the class accepts but drops."),
      dictionary("other_names", name, "Aliases in config.json, each with the key it stands for."),
      dictionary("parts", part, "Nested configurations.")};
  return fields;
}

Result<CompletedConfig> with_class_defaults(const std::filesystem::path& folder, const json::object& config) {
  const json::value* const type = config.if_contains("model_type");
  if (!type || !type->is_string()) return CompletedConfig{config};
  const std::string name(type->get_string());
  BOOST_OUTCOME_TRY(auto made, completed(name, false, folder, config, 0));
  if (!made) {
    BOOST_OUTCOME_TRY(const auto known, find_model_type(name, false));
    return CompletedConfig{config, known.has_value()};
  }
  (*made)["_name_or_path"] = folder.string();  // overrides the file
  return CompletedConfig{std::move(*made)};
}

}  // namespace ggufmill::huggingface
