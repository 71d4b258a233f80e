#include "stages/huggingface/map/model_type.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "pipeline/config/extended_files.h"
#include "pipeline/core/json.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/values.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr int kDeepestPart = 8;

// A nested configuration: that of one model, in a checkpoint of several.
struct Part {
  std::string key{};
  std::string type{};                 // model type; empty: as the part states
  std::string default_type{};         // model type if the part states none
  json::object defaults{};            // values that the outer class passes for missing keys
  bool takes_all_if_missing = false;  // a missing part is made from the sibling keys
  bool keeps_other_types = false;     // a part of an unknown type stays as it is
};

using Rules = NamedValues<ValueRule>;  // in order; each key once

struct ModelType {
  std::string class_name{};
  std::vector<MapParent> extends{};
  bool is_partial = false;
  Rules defaults{}, where_null{}, always{};
  std::vector<ValueRule> refuses{};
  std::vector<std::string> drops{};
  NamedValues<std::string> other_names{};
  std::vector<Part> parts{};
};

const BuiltInModelType* built_in(std::string_view name) {
  const auto found = std::ranges::find(built_in_model_types(), name, &BuiltInModelType::name);
  return found == built_in_model_types().end() ? nullptr : &*found;
}

Form<json::object> constants_form() {
  return converted<json::object>(dictionary_of(value_form().doc("A value.")), [](const Rules& rules) {
    json::object constants;
    for (const auto& [name, rule] : rules) constants[name] = rule.constant;
    return constants;
  });
}

Form<std::vector<Part>> parts_form() {
  const auto part = map_of<Part>({
                                     field("type", &Part::type, "Model type, overriding its own."),
                                     field("default_type", &Part::default_type, "Model type if it has none."),
                                     field("defaults", &Part::defaults, constants_form(),
                                           "Constants for missing keys, applied before those of its model type."),
                                     field("takes_all_if_missing", &Part::takes_all_if_missing,
                                           "Take the sibling keys if it is missing."),
                                     field("keeps_other_types", &Part::keeps_other_types,
                                           "Leave a part of a model type without a file as it is."),
                                 })
                        .doc("A part.");
  return converted<std::vector<Part>>(dictionary_of(part), [](NamedValues<Part> named) {
    std::vector<Part> parts;
    for (auto& [key, value] : named) {
      value.key = key;
      parts.push_back(std::move(value));
    }
    return parts;
  });
}

const Form<ModelType>& model_type_form() {
  using Type = ModelType;
  const auto names = [] { return list_of(text().doc("Name.")); };
  const auto rules = [] { return dictionary_of(value_form().doc("A value.")); };
  static const Form<Type> form = map_of<Type>({
      field("class", &Type::class_name, "transformers configuration class."),
      field("extends", &Type::extends, list_of(shorthand(&MapParent::name, text().doc("Name.")).at(&MapParent::origin)),
            "Other files by name; rules here come after theirs and replace those for the same key."),
      field("partial", &Type::is_partial, "Can only be extended."),
      field("defaults", &Type::defaults, rules(), "Values of missing keys, in order."),
      field("where_null", &Type::where_null, rules(), "Values of keys that are null or still missing, in order."),
      field("always", &Type::always, rules(), "Values that replace those of the keys, in order."),
      field("refuses", &Type::refuses, list_of(value_form().doc("A value.")),
            "Conditions under which config.json is read as is."),
      field("drops", &Type::drops, names(), "Keys that the class accepts but drops."),
      field("other_names", &Type::other_names, dictionary_of(text().doc("Name.")),
            "Aliases in config.json, each with the key it stands for."),
      field("parts", &Type::parts, parts_form(), "Nested configurations."),
  });
  return form;
}

// Rules for a key replace those that are inherited.
void extend(Rules& inherited, Rules own) {
  for (auto& rule : own) {
    std::erase_if(inherited, [&](const auto& other) { return other.first == rule.first; });
    inherited.push_back(std::move(rule));
  }
}

Status read_into(const BuiltInModelType& file, ModelType& into) {
  BOOST_OUTCOME_TRY(ModelType own, parse_document(file.text, std::string(file.name) + ".yaml", model_type_form()));
  for (const MapParent& parent : own.extends) {
    const BuiltInModelType* const other = built_in(parent.name);
    if (!other) return error_at(parent.origin, "unknown model type '" + parent.name + "'");
    BOOST_OUTCOME_TRY(read_into(*other, into));
  }
  into.is_partial = own.is_partial;
  extend(into.defaults, std::move(own.defaults));
  extend(into.where_null, std::move(own.where_null));
  extend(into.always, std::move(own.always));
  put_last(into.refuses, std::move(own.refuses));
  put_last(into.drops, std::move(own.drops));
  put_last(into.other_names, std::move(own.other_names));
  put_last(into.parts, std::move(own.parts));
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
std::optional<json::object> with_values(const ModelType& type, const fs::path& folder, json::object config) {
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

Result<std::optional<json::object>> completed(const std::string& type_name, bool asked_by_file, const fs::path& folder,
                                              const json::object& config, int depth);

// Returns the completed configuration of a part of `config`; `siblings` are the members that are not parts.
Result<std::optional<json::object>> completed_part(const Part& part, const fs::path& folder, const json::object& config,
                                                   const json::object& siblings, int depth) {
  const json::value* const own = config.if_contains(part.key);
  json::object members;
  if (own && own->is_object())
    members = own->get_object();
  else if (own && !own->is_null())
    return std::optional<json::object>();
  else if (part.takes_all_if_missing)
    members = siblings;
  std::string type = part.type;
  if (type.empty()) {
    const json::value* const own_type = members.if_contains("model_type");
    if (own_type && !own_type->is_string()) return std::optional<json::object>();
    type = own_type ? std::string(own_type->get_string()) : part.default_type;
  }
  if (part.keeps_other_types && !built_in(type)) return std::optional<json::object>(std::move(members));
  for (const auto& each : part.defaults)
    if (!members.contains(each.key())) members[each.key()] = each.value();
  members["model_type"] = type;
  return completed(type, !part.type.empty(), folder, members, depth + 1);
}

Result<std::optional<json::object>> completed(const std::string& type_name, bool asked_by_file, const fs::path& folder,
                                              const json::object& config, int depth) {
  if (depth > kDeepestPart) return std::optional<json::object>();
  BOOST_OUTCOME_TRY(const auto type, find_model_type(type_name, asked_by_file));
  if (!type) return std::optional<json::object>();
  json::object alone = config;
  for (const Part& part : type->parts) alone.erase(part.key);
  const json::object siblings = alone;
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
    BOOST_OUTCOME_TRY(auto made, completed_part(part, folder, config, siblings, depth));
    if (!made) return made;
    (*result)[part.key] = std::move(*made);
  }
  return result;
}

}  // namespace

FieldSpec model_type_fields() {
  FieldSpec spec = model_type_form().spec;
  spec.name = "model_type";
  spec.doc = "How transformers completes a config.json of a model type.";
  return spec;
}

Result<CompletedConfig> with_class_defaults(const fs::path& folder, const json::object& config) {
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
