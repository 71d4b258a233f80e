// Named functions of value rules: objects.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/core/json.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/value_functions.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

Result<const json::object*> object_of(const json::value& value) {
  if (const json::object* found = value.if_object()) return found;
  return input_error({}, fmt::format("{} is not an object", shown(value)));
}

Result<json::value> member(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  const auto name = json_text(a[1]);
  if (!name) return input_error({}, fmt::format("{} is not a name", shown(a[1])));
  const json::value* const found = json_member(a[0], *name);
  return found ? *found : json::value();
}

Result<json::value> object(Arguments a, const Facts&) {
  json::object result;
  for (std::size_t i = 0; i + 1 < a.size(); i += 2) {
    const auto name = json_text(a[i]);
    if (!name) return input_error({}, fmt::format("{} is not a name", shown(a[i])));
    result[*name] = a[i + 1];
  }
  return json::value(std::move(result));
}

Result<json::value> member_instead(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  BOOST_OUTCOME_TRY(const json::object* from, object_of(a[0]));
  const auto name = json_text(a[1]);
  if (!name) return input_error({}, fmt::format("{} is not a name", shown(a[1])));
  json::object result = *from;
  if (json::value* member = result.if_contains(*name); member && same(*member, a[2])) *member = a[3];
  return json::value(std::move(result));
}

// Returns the text with every occurrence of `from`, which is not empty, replaced.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

Result<json::value> members_renamed(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  BOOST_OUTCOME_TRY(const json::object* from, object_of(a[0]));
  json::object result;
  for (const auto& member : *from) {
    std::string name(member.key());
    for (std::size_t i = 1; i + 1 < a.size(); i += 2) {
      const auto part = json_text(a[i]), instead = json_text(a[i + 1]);
      if (!part || part->empty() || !instead)
        return input_error({}, fmt::format("{} cannot be replaced with {}", shown(a[i]), shown(a[i + 1])));
      name = replaced(std::move(name), *part, *instead);
    }
    result[name] = member.value();
  }
  return json::value(std::move(result));
}

// Returns an object with the names and values at the same places of two lists, up to the end of the shorter one.
Result<json::value> named_values(Arguments a, const Facts&) {
  if (any_missing(a)) return json::value();
  BOOST_OUTCOME_TRY(const json::array* names, array_of(a[0]));
  BOOST_OUTCOME_TRY(const json::array* values, array_of(a[1]));
  json::object result;
  for (std::size_t i = 0; i < std::min(names->size(), values->size()); ++i) {
    const auto name = json_text((*names)[i]);
    if (!name) return input_error({}, fmt::format("{} is not a name", shown((*names)[i])));
    result[*name] = (*values)[i];
  }
  return json::value(std::move(result));
}

Result<json::value> values_by_number(Arguments a, const Facts&) {
  if (a[0].is_null() || a[0].is_array()) return a[0];
  BOOST_OUTCOME_TRY(const json::object* from, object_of(a[0]));
  std::map<std::int64_t, json::value> members;
  for (const auto& member : *from) {
    const std::string_view name = member.key();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size())
      return input_error({}, fmt::format("{} is not a number", shown(json::value(name))));
    members[number] = member.value();
  }
  json::array result;
  for (auto& [number, value] : members) result.push_back(std::move(value));
  return json::value(std::move(result));
}

Result<json::value> sorted_values(Arguments a, const Facts&) {
  if (a[0].is_null() || a[0].is_array()) return a[0];
  BOOST_OUTCOME_TRY(const json::object* object, object_of(a[0]));
  std::vector<std::pair<std::string, json::value>> members;
  for (const auto& member : *object) members.emplace_back(member.key(), member.value());
  std::ranges::sort(members, {}, [](const auto& member) { return member.first; });
  json::array result;
  for (auto& member : members) result.push_back(std::move(member.second));
  return json::value(std::move(result));
}

// The keys that a rope_scaling of each type must have in addition to `rope_type`.
struct RopeKeys {
  std::string_view type;
  std::array<std::string_view, 4> keys;
};
constexpr RopeKeys kRopeKeys[] = {
    {"default", {}},
    {"linear", {"factor"}},
    {"dynamic", {"factor"}},
    {"yarn", {"factor"}},
    {"longrope", {"short_factor", "long_factor"}},
    {"llama3", {"factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"}},
};

Result<json::value> lacks_rope_keys(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value(false);
  BOOST_OUTCOME_TRY(const json::object* rope, object_of(a[0]));
  const json::value* type = rope->if_contains("rope_type");
  if (!type) type = rope->if_contains("type");
  const json::value by_default("default");
  const auto name = json_text(type ? *type : by_default);
  const auto known = name ? std::ranges::find(kRopeKeys, *name, &RopeKeys::type) : std::end(kRopeKeys);
  if (known == std::end(kRopeKeys)) return json::value(false);
  const auto lacks = [&](std::string_view key) { return !key.empty() && !rope->contains(key); };
  return json::value(lacks("rope_type") || std::ranges::any_of(known->keys, lacks));
}

Result<json::value> as_rope_type(Arguments a, const Facts&) {
  if (a[0].is_null()) return json::value();
  BOOST_OUTCOME_TRY(const json::object* from, object_of(a[0]));
  json::object result = *from;
  if (const json::value* type = from->if_contains("type")) result["rope_type"] = *type;
  return json::value(std::move(result));
}

constexpr ValueFunction kObjectFunctions[] = {
    {"as_rope_type", 1, 1, "An object with a copy of its member `type` as `rope_type`.", as_rope_type},
    {"lacks_rope_keys", 1, 1, "Whether a rope_scaling is missing a key that its type requires.", lacks_rope_keys},
    {"member", 2, 2, "The member of an object with a name; null if there is none.", member},
    {"member_instead", 4, 4, "An object in which the member named by the second is the fourth if it is the third.",
     member_instead},
    {"members_renamed", 3, kManyArguments,
     "An object in whose members' names texts are replaced: each text, then its replacement.", members_renamed},
    {"named_values", 2, 2, "An object with the names in a list and the values in another, up to the shorter one's end.",
     named_values},
    {"object", 2, kManyArguments, "An object of alternating names and values.", object},
    {"sorted_values", 1, 1, "The values of an object in the order of their names; a list as is.", sorted_values},
    {"values_by_number", 1, 1, "The values of an object in numeric order of its names; a list as is.",
     values_by_number},
};

}  // namespace

std::span<const ValueFunction> object_functions() { return kObjectFunctions; }

}  // namespace ggufmill::huggingface
