#include "pipeline/core/json.h"

#include <fmt/format.h>

#include <charconv>

namespace ggufmill {

namespace json = boost::json;

std::optional<std::string_view> json_text(const json::value& value) {
  const json::string* text = value.if_string();
  return text ? std::optional<std::string_view>({text->data(), text->size()}) : std::nullopt;
}

const json::value* json_member(const json::value& value, std::string_view name) {
  const json::object* object = value.if_object();
  return object ? object->if_contains({name.data(), name.size()}) : nullptr;
}
const json::array* json_array(const json::value& value, std::string_view name) {
  const json::value* member = json_member(value, name);
  return member ? member->if_array() : nullptr;
}
std::optional<std::string_view> json_string(const json::value& value, std::string_view name) {
  const json::value* member = json_member(value, name);
  return member ? json_text(*member) : std::nullopt;
}
bool json_flag(const json::value& value, std::string_view name, bool otherwise) {
  const json::value* member = json_member(value, name);
  return member && member->is_bool() ? member->get_bool() : otherwise;
}

const json::value& needed(const json::value& value, std::string_view name) {
  const json::value* found = json_member(value, name);
  if (!found) throw InvalidJson{fmt::format("'{}' is missing", name)};
  return *found;
}

const json::array& needed_list(const json::value& value, std::string_view name) {
  const json::array* list = json_array(value, name);
  if (!list) throw InvalidJson{fmt::format("'{}' is not a list", name)};
  return *list;
}

std::string needed_text(const json::value& value, std::string_view name) {
  const json::value& text = needed(value, name);
  if (!text.is_string()) throw InvalidJson{fmt::format("'{}' is not a string", name)};
  return std::string(text.get_string());
}

std::uint64_t needed_number(const json::value& value, std::string_view name) {
  const json::value& number = needed(value, name);
  if (number.is_uint64()) return number.get_uint64();
  if (!number.is_int64() || number.get_int64() < 0)
    throw InvalidJson{fmt::format("'{}' is not a non-negative integer", name)};
  return static_cast<std::uint64_t>(number.get_int64());
}

std::uint64_t needed_hash(const json::value& value, std::string_view name) {
  const std::string text = needed_text(value, name);
  std::uint64_t hash = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != 16)
    throw InvalidJson{fmt::format("'{}' is not a hash of 16 hexadecimal digits", name)};
  return hash;
}

}  // namespace ggufmill
