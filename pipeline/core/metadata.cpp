#include "pipeline/core/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

static_assert(std::endian::native == std::endian::little, "the canonical encoding is copied from memory as it is");

struct TypeRow {
  std::string_view name;
  std::size_t bytes;  // 0: variable size
};
constexpr TypeRow kTypes[] = {{"uint8", 1},  {"int8", 1},    {"uint16", 2}, {"int16", 2},  {"uint32", 4},
                              {"int32", 4},  {"float32", 4}, {"bool", 1},   {"string", 0}, {"array", 0},
                              {"uint64", 8}, {"int64", 8},   {"float64", 8}};

const TypeRow* row_of(MetadataType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(kTypes) ? &kTypes[index] : nullptr;
}

template <class T>
std::string bytes_of_value(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T read_as(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

bool is_signed_integer(MetadataType type) {
  return type == MetadataType::kInt8 || type == MetadataType::kInt16 || type == MetadataType::kInt32 ||
         type == MetadataType::kInt64;
}

bool is_unsigned_integer(MetadataType type) {
  return type == MetadataType::kUint8 || type == MetadataType::kUint16 || type == MetadataType::kUint32 ||
         type == MetadataType::kUint64;
}

// Returns the value, sign-extended; only for integer types, and only if the number of bytes matches the type.
std::optional<std::int64_t> integer_bits(const MetadataValue& value) {
  if (value.bytes.size() != metadata_type_bytes(value.type)) return {};
  switch (value.type) {
    case MetadataType::kUint8:
      return read_as<std::uint8_t>(value.bytes);
    case MetadataType::kInt8:
      return read_as<std::int8_t>(value.bytes);
    case MetadataType::kUint16:
      return read_as<std::uint16_t>(value.bytes);
    case MetadataType::kInt16:
      return read_as<std::int16_t>(value.bytes);
    case MetadataType::kUint32:
      return read_as<std::uint32_t>(value.bytes);
    case MetadataType::kInt32:
      return read_as<std::int32_t>(value.bytes);
    case MetadataType::kUint64:
    case MetadataType::kInt64:
      return read_as<std::int64_t>(value.bytes);
    default:
      return {};
  }
}

// Returns the size in bytes of the value of type `type` at the start of `bytes`, or 0 if it does not fit.
std::size_t item_bytes(MetadataType type, std::string_view bytes, int depth = 0) {
  if (const std::size_t fixed = metadata_type_bytes(type)) return fixed <= bytes.size() ? fixed : 0;
  if (type == MetadataType::kString) {
    if (bytes.size() < 8) return 0;
    const auto length = read_as<std::uint64_t>(bytes);
    return length <= bytes.size() - 8 ? 8 + static_cast<std::size_t>(length) : 0;
  }
  if (type != MetadataType::kArray || bytes.size() < 12 || depth > 8) return 0;
  const auto element = static_cast<MetadataType>(read_as<std::uint32_t>(bytes));
  const auto count = read_as<std::uint64_t>(bytes.substr(4));
  std::size_t at = 12;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t item = item_bytes(element, bytes.substr(at), depth + 1);
    if (item == 0) return 0;
    at += item;
  }
  return at;
}

std::string quoted(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  std::string escaped;
  while (end < text.size() && end < width) {
    const std::string_view rest = text.substr(end);
    const std::size_t length = std::max<std::size_t>(1, utf8_sequence(rest));
    if (rest[0] == '"' || rest[0] == '\\') escaped += '\\';
    escaped += rest[0] == '\n' ? "\\n" : printable(rest.substr(0, length));
    end += length;
  }
  return "\"" + escaped + (end < text.size() ? "\"..." : "\"");
}

}  // namespace

std::string_view metadata_type_name(MetadataType type) {
  const TypeRow* row = row_of(type);
  return row ? row->name : std::string_view();
}

std::optional<MetadataType> metadata_type_named(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i].name == name) return static_cast<MetadataType>(i);
  return {};
}

std::size_t metadata_type_bytes(MetadataType type) {
  const TypeRow* row = row_of(type);
  return row ? row->bytes : 0;
}

MetadataValue metadata_string(std::string_view text) {
  return {MetadataType::kString, bytes_of_value<std::uint64_t>(text.size()).append(text)};
}

MetadataValue metadata_bool(bool value) { return {MetadataType::kBool, std::string(1, value ? '\1' : '\0')}; }

MetadataValue metadata_unsigned(MetadataType type, std::uint64_t value) {
  return {type, bytes_of_value(value).substr(0, metadata_type_bytes(type))};
}

MetadataValue metadata_float(MetadataType type, double value) {
  if (type == MetadataType::kFloat32) return {type, bytes_of_value(static_cast<float>(value))};
  return {MetadataType::kFloat64, bytes_of_value(value)};
}

MetadataValue metadata_array(MetadataType element, const std::vector<MetadataValue>& items) {
  std::string bytes = bytes_of_value(static_cast<std::uint32_t>(element)) + bytes_of_value<std::uint64_t>(items.size());
  for (const MetadataValue& item : items) bytes += item.bytes;
  return {MetadataType::kArray, std::move(bytes)};
}

std::optional<std::uint64_t> as_unsigned(const MetadataValue& value) {
  const auto bits = integer_bits(value);
  if (!bits || (*bits < 0 && !is_unsigned_integer(value.type))) return {};
  return static_cast<std::uint64_t>(*bits);
}

std::optional<std::int64_t> as_signed(const MetadataValue& value) {
  const auto bits = integer_bits(value);
  if (!bits || (*bits < 0 && !is_signed_integer(value.type))) return {};
  return bits;
}

std::optional<double> as_number(const MetadataValue& value) {
  if (const auto whole = as_signed(value)) return static_cast<double>(*whole);
  if (const auto whole = as_unsigned(value)) return static_cast<double>(*whole);
  if (value.type == MetadataType::kFloat32 && value.bytes.size() == 4) return read_as<float>(value.bytes);
  if (value.type == MetadataType::kFloat64 && value.bytes.size() == 8) return read_as<double>(value.bytes);
  return {};
}

std::optional<bool> as_bool(const MetadataValue& value) {
  if (value.type != MetadataType::kBool || value.bytes.size() != 1) return {};
  return value.bytes[0] != 0;
}

std::optional<std::string_view> as_string(const MetadataValue& value) {
  if (value.type != MetadataType::kString || item_bytes(value.type, value.bytes) != value.bytes.size()) return {};
  return std::string_view(value.bytes).substr(8);
}

std::optional<ArrayView> as_array(const MetadataValue& value) {
  if (value.type != MetadataType::kArray || value.bytes.size() < 12) return {};
  const std::string_view bytes = value.bytes;
  return ArrayView{static_cast<MetadataType>(read_as<std::uint32_t>(bytes)), read_as<std::uint64_t>(bytes.substr(4)),
                   bytes.substr(12)};
}

bool for_each_item(const MetadataValue& array, const std::function<bool(MetadataValue item)>& take) {
  const auto view = as_array(array);
  if (!view) return false;
  std::string_view rest = view->bytes;
  for (std::uint64_t i = 0; i < view->count; ++i) {
    const std::size_t size = item_bytes(view->element, rest);
    if (size == 0) return false;
    if (!take({view->element, std::string(rest.substr(0, size))})) return true;
    rest.remove_prefix(size);
  }
  return true;
}

std::vector<MetadataValue> array_items(const MetadataValue& array, std::size_t at_most) {
  std::vector<MetadataValue> items;
  const bool valid = for_each_item(array, [&](MetadataValue item) {
    if (items.size() < at_most) items.push_back(std::move(item));
    return items.size() < at_most;
  });
  return valid ? items : std::vector<MetadataValue>();
}

bool is_utf8(const MetadataValue& value) {  // NOLINT(misc-no-recursion): as deep as arrays are nested
  if (const auto text = as_string(value)) return is_utf8(*text);
  bool good = true;
  for_each_item(value, [&](const MetadataValue& item) { return good = is_utf8(item); });
  return good;
}

std::string full_type_name(const MetadataValue& value) {  // NOLINT(misc-no-recursion): item_bytes() limits the depth
  const auto array = as_array(value);
  if (!array) return std::string(metadata_type_name(value.type));
  std::string element(metadata_type_name(array->element));
  if (array->element == MetadataType::kArray)
    for_each_item(value, [&](const MetadataValue& item) {
      element = full_type_name(item);
      return as_array(item)->count == 0 || element.find("array") == 0;
    });
  return element + "[]";
}

std::string describe(const MetadataValue& value, std::size_t width) {
  if (const auto text = as_string(value)) return quoted(*text, width);
  if (const auto flag = as_bool(value)) return *flag ? "true" : "false";
  if (const auto whole = as_signed(value)) return std::to_string(*whole);
  if (const auto whole = as_unsigned(value)) return std::to_string(*whole);
  if (value.type == MetadataType::kFloat32)
    if (const auto number = as_number(value)) return fmt::format("{}", static_cast<float>(*number));
  if (const auto number = as_number(value)) return fmt::format("{}", *number);
  const auto array = as_array(value);
  if (!array) return "malformed";
  std::string out = fmt::format("array of {} {}", array->count, metadata_type_name(array->element));
  std::string separator = ": ";
  for (const MetadataValue& item : array_items(value, 8)) {
    const std::string text = describe(item, width / 4);
    if (out.size() + text.size() > width) return out + separator + "...";
    out += separator + text;
    separator = ", ";
  }
  return array->count > 8 ? out + ", ..." : out;
}

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto at = index_.find(key);
  return at == index_.end() ? nullptr : &entries_[at->second].value;
}

bool Metadata::add(std::string key, MetadataValue value) {
  if (!index_.emplace(key, entries_.size()).second) return false;
  entries_.push_back({std::move(key), std::move(value)});
  return true;
}

void Metadata::set(std::string key, MetadataValue value) {
  const auto at = index_.find(key);
  if (at == index_.end())
    add(std::move(key), std::move(value));
  else
    entries_[at->second].value = std::move(value);
}

void Metadata::set_at_end(std::string key, MetadataValue value) {
  remove(key);
  add(std::move(key), std::move(value));
}

bool Metadata::remove(std::string_view key) {
  const auto at = index_.find(key);
  if (at == index_.end()) return false;
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at->second));
  reindex();
  return true;
}

void Metadata::reindex() {
  index_.clear();
  for (std::size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].key, i);
}

}  // namespace ggufmill
