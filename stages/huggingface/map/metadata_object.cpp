#include "stages/huggingface/map/metadata_object.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <charconv>
#include <cmath>
#include <string>

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMaxListItems = 1024;  // of metadata that rules see
constexpr std::ptrdiff_t kMaxKeyDots = 8;      // dots in a key that rules see

// Returns the number with the fewest digits that is read as this float32: 1e-05 rather than 9.999999747378752e-06.
double shortest(float number) {
  char digits[64];
  const auto written = std::to_chars(digits, digits + sizeof digits, number);
  double read = number;
  std::from_chars(digits, written.ptr, read);
  return read;
}

}  // namespace

json::value json_of(const MetadataValue& value) {
  if (const auto flag = as_bool(value)) return *flag;
  if (const auto number = as_signed(value)) return *number;
  if (const auto number = as_number(value)) {
    const bool is_short = value.type == MetadataType::kFloat32 && std::isfinite(*number);
    return is_short ? shortest(static_cast<float>(*number)) : *number;
  }
  if (const auto text = as_string(value)) return json::string(*text);
  const auto list = as_array(value);
  if (!list || list->count > kMaxListItems) return nullptr;
  json::array items;
  for (const MetadataValue& item : array_items(value)) {
    json::value each = json_of(item);
    if (each.is_null() || each.is_array()) return nullptr;
    items.push_back(std::move(each));
  }
  return items;
}

json::object object_of(const Metadata& metadata, std::string_view architecture) {
  json::object object;
  const std::string prefix = std::string(architecture) + ".";
  for (const MetadataEntry& entry : metadata.entries()) {
    if (!entry.key.starts_with(prefix)) continue;
    std::string_view name = std::string_view(entry.key).substr(prefix.size());
    if (std::ranges::count(name, '.') > kMaxKeyDots) continue;
    json::object* at = &object;
    for (std::size_t dot = name.find('.'); at && dot != std::string_view::npos; dot = name.find('.')) {
      json::value& member = (*at)[name.substr(0, dot)];
      if (member.is_null()) member.emplace_object();
      at = member.if_object();
      name.remove_prefix(dot + 1);
    }
    if (json::value value = json_of(entry.value); at && !value.is_null()) (*at)[name] = std::move(value);
  }
  return object;
}

}  // namespace ggufmill::huggingface
