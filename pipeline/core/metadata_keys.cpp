#include "pipeline/core/metadata_keys.h"

#include <algorithm>
#include <vector>

#include "pipeline/core/table_rows.h"

namespace ggufmill {

std::string_view metadata_key_table();  // metadata_keys.tsv

namespace {

const std::vector<KnownKey>& known_keys() {
  static const std::vector<KnownKey> kKeys = [] {
    std::vector<KnownKey> keys;
    for (const auto& row : table_rows(metadata_key_table())) keys.push_back({row.at(0), row.at(1), row.at(2)});
    return keys;
  }();
  return kKeys;
}

// Removes the part up to the separator, and the separator, from `text`. Returns the part.
std::string_view take_part(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

bool fits(std::string_view part, std::string_view pattern) {
  if (pattern == "[arch]" || pattern == "[name]") return !part.empty();
  if (pattern != "[n]") return part == pattern;
  return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

bool matches(std::string_view key, std::string_view pattern) {
  while (!key.empty() && !pattern.empty())
    if (!fits(take_part(key, '.'), take_part(pattern, '.'))) return false;
  return key.empty() && pattern.empty();
}

}  // namespace

const KnownKey* known_key(std::string_view key) {
  const std::vector<KnownKey>& keys = known_keys();
  auto found = std::ranges::find(keys, key, &KnownKey::key);
  if (found == keys.end())
    found = std::ranges::find_if(keys, [&](const KnownKey& known) { return matches(key, known.key); });
  return found == keys.end() ? nullptr : &*found;
}

std::string_view known_type(std::string_view key, bool is_list) {
  const KnownKey* known = known_key(key);
  if (!known) return {};
  for (std::string_view rest = known->types; !rest.empty();)
    if (const std::string_view type = take_part(rest, ','); type.ends_with("[]") == is_list) return type;
  return known->types.substr(0, known->types.find(','));
}

bool is_one_of(std::string_view type, std::string_view types) {
  while (!types.empty())
    if (take_part(types, ',') == type) return true;
  return false;
}

}  // namespace ggufmill
