#include "pipeline/config/written_value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

struct IntegerRange {
  MetadataType type;
  std::int64_t least;
  std::uint64_t most;
};

// In the order in which the type of an untyped integer is chosen.
constexpr IntegerRange kIntegers[] = {
    {MetadataType::kUint32, 0, std::numeric_limits<std::uint32_t>::max()},
    {MetadataType::kInt32, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()},
    {MetadataType::kUint64, 0, std::numeric_limits<std::uint64_t>::max()},
    {MetadataType::kInt64, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()},
    {MetadataType::kUint8, 0, 255},
    {MetadataType::kInt8, -128, 127},
    {MetadataType::kUint16, 0, 65535},
    {MetadataType::kInt16, -32768, 32767},
};

const IntegerRange* range_of(MetadataType type) {
  for (const IntegerRange& range : kIntegers)
    if (range.type == type) return &range;
  return nullptr;
}

bool is_float(MetadataType type) { return type == MetadataType::kFloat32 || type == MetadataType::kFloat64; }

// An integer between -2^63 and 2^64 - 1, stored as its 64 bits and its sign.
struct Whole {
  std::uint64_t bits;
  bool negative;
};

std::optional<Whole> parse_whole(const std::string& text) {
  const char* end = text.data() + text.size();
  std::int64_t with_sign = 0;
  std::uint64_t without_sign = 0;
  if (std::from_chars(text.data(), end, without_sign) == std::from_chars_result{end, std::errc()})
    return Whole{without_sign, false};
  if (std::from_chars(text.data(), end, with_sign) == std::from_chars_result{end, std::errc()})
    return Whole{static_cast<std::uint64_t>(with_sign), with_sign < 0};
  return {};
}

std::optional<double> parse_float(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number) != std::from_chars_result{end, std::errc()}) return {};
  return number;
}

bool holds(const IntegerRange& range, Whole whole) {
  return whole.negative ? static_cast<std::int64_t>(whole.bits) >= range.least : whole.bits <= range.most;
}

std::string type_choices() {
  std::string text;
  for (std::uint32_t i = 0; i <= static_cast<std::uint32_t>(MetadataType::kFloat64); ++i)
    if (static_cast<MetadataType>(i) != MetadataType::kArray)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", metadata_type_name(static_cast<MetadataType>(i)));
  return text;
}

Result<MetadataValue> integer_as(const WrittenValue& written, MetadataType type) {
  const auto whole = parse_whole(written.text);
  const IntegerRange* range = range_of(type);
  if (!whole)
    return error_at(written.origin,
                    fmt::format("'{}' is not an integer, but {} needs one", written.text, metadata_type_name(type)));
  if (!holds(*range, *whole))
    return error_at(written.origin, fmt::format("{} does not fit {}: {} to {}", written.text, metadata_type_name(type),
                                                range->least, range->most));
  return metadata_unsigned(type, whole->bits);
}

// Converts a scalar to a type that is not an array.
Result<MetadataValue> scalar_as(const WrittenValue& written, MetadataType type) {
  if (written.kind != WrittenValue::Kind::kScalar)
    return error_at(written.origin, fmt::format("expected a single {} here", metadata_type_name(type)));
  if (type == MetadataType::kString) return metadata_string(written.text);
  if (type == MetadataType::kBool) {
    const Result<bool> flag = parse_bool(written.text);
    if (!flag) return error_at(written.origin, flag.error().what, flag.error().help);
    return metadata_bool(flag.value());
  }
  if (range_of(type)) return integer_as(written, type);
  const auto number = parse_float(written.text);
  if (!number)
    return error_at(written.origin,
                    fmt::format("'{}' is not a number, but {} needs one", written.text, metadata_type_name(type)));
  return metadata_float(type, *number);
}

// Returns the type of an untyped scalar, regardless of any previous value.
MetadataType natural_type(const WrittenValue& written) {
  if (written.is_text) return MetadataType::kString;
  if (written.text == "true" || written.text == "false") return MetadataType::kBool;
  if (const auto whole = parse_whole(written.text))
    for (const IntegerRange& range : kIntegers)
      if (holds(range, *whole)) return range.type;
  return parse_float(written.text) ? MetadataType::kFloat32 : MetadataType::kString;
}

// Returns `before` if a value of type `natural` can be converted to it without changing its kind; otherwise `natural`.
MetadataType prefer(MetadataType natural, std::optional<MetadataType> before) {
  if (!before) return natural;
  if (range_of(natural) && (range_of(*before) || is_float(*before))) return *before;
  if (is_float(natural) && is_float(*before)) return *before;
  return natural;
}

// Returns a type that can represent two untyped items of one list.
MetadataType common(MetadataType a, MetadataType b) {
  if (a == b) return a;
  if ((range_of(a) || is_float(a)) && (range_of(b) || is_float(b))) {
    if (is_float(a) || is_float(b)) return MetadataType::kFloat32;
    return MetadataType::kInt64;
  }
  return MetadataType::kString;
}

Result<MetadataValue> list_as(const WrittenValue& written, std::string_view element);

// `type_name` is a type followed by any number of [].
Result<MetadataValue> value_as(const WrittenValue& written, std::string_view type_name) {
  if (type_name.ends_with("[]")) return list_as(written, type_name.substr(0, type_name.size() - 2));
  const auto type = metadata_type_named(type_name);
  return scalar_as(written, *type);
}

Result<MetadataValue> list_as(const WrittenValue& written, std::string_view element) {
  if (written.kind != WrittenValue::Kind::kList)
    return error_at(written.origin, fmt::format("expected a list for type '{}[]'", element));
  std::vector<MetadataValue> items;
  for (const WrittenValue& item : written.items) {
    BOOST_OUTCOME_TRY(items.emplace_back(), value_as(item, element));
  }
  const bool nested = element.ends_with("[]");
  return metadata_array(nested ? MetadataType::kArray : *metadata_type_named(element), items);
}

// Returns the element type if the current value of the key is an array.
std::optional<MetadataType> element_of(const MetadataValue* before) {
  if (!before) return {};
  const auto array = as_array(*before);
  if (!array) return {};
  return array->element;
}

Result<MetadataValue> untyped_list(const WrittenValue& written, const MetadataValue* before) {
  const auto element_before = element_of(before);
  std::optional<MetadataType> element;
  for (const WrittenValue& item : written.items) {
    if (item.kind != WrittenValue::Kind::kScalar)
      return error_at(item.origin, "a list of lists needs a type", "write {type: uint32[][], value: ...}");
    element = element ? common(*element, natural_type(item)) : natural_type(item);
  }
  if (element) return list_as(written, metadata_type_name(prefer(*element, element_before)));
  if (element_before) return list_as(written, metadata_type_name(*element_before));
  return error_at(written.origin, "the type of an empty list is unknown", "write {type: string[], value: []}");
}

}  // namespace

Result<MetadataValue> value_of(const WrittenValue& written, std::string_view type, const Origin& type_origin) {
  std::string_view base = type;
  while (base.ends_with("[]")) base.remove_suffix(2);
  const auto known = metadata_type_named(base);
  if (!known || *known == MetadataType::kArray)
    return error_at(type_origin, fmt::format("unknown metadata type '{}'", type),
                    fmt::format("types: {}; arrays: string[], uint32[][]", type_choices()));
  return value_as(written, type);
}

Result<MetadataValue> value_of(const WrittenValue& written, const MetadataValue* before) {
  if (written.kind == WrittenValue::Kind::kList) return untyped_list(written, before);
  if (written.kind != WrittenValue::Kind::kScalar) return error_at(written.origin, "a value is missing here");
  const auto now = before ? std::optional(before->type) : std::nullopt;
  return scalar_as(written, written.is_text ? MetadataType::kString : prefer(natural_type(written), now));
}

WrittenValue written_value(const ConfigNode& node) {
  WrittenValue written{.text = node.scalar, .is_text = node.quoted, .origin = origin_of(node)};
  if (!node.is_scalar()) written.kind = node.is_list() ? WrittenValue::Kind::kList : WrittenValue::Kind::kOther;
  for (const ConfigNode& item : node.items) written.items.push_back(written_value(item));
  return written;
}

namespace {

Form<WrittenValue> written_form(FieldSpec spec) {
  Form<WrittenValue> form;
  form.spec = std::move(spec);
  form.read_with([](const ConfigNode& node) { return written_value(node); });
  return form;
}

}  // namespace

Form<WrittenValue> written_scalar(std::string doc) { return written_form({.doc = std::move(doc)}); }

Form<WrittenValue> written_list(std::string doc) {
  return written_form(
      {.kind = FieldKind::kList, .doc = std::move(doc), .item = {{.kind = FieldKind::kAny, .doc = "An element."}}});
}

Fields<TypedValue> typed_value_fields() {
  return {field("type", &TypedValue::type, "Metadata type; append [] for an array.")
              .example("uint64")
              .at(&TypedValue::type_origin),
          field("value", &TypedValue::value, written_form({.kind = FieldKind::kAny}), "The value.")};
}

Result<MetadataValue> value_of(const TypedValue& typed) {
  if (!typed.type || !typed.value)
    return error_at(typed.origin, "a typed value needs both 'type' and 'value'", "write {type: uint64, value: 5}");
  return value_of(*typed.value, *typed.type, typed.type_origin);
}

}  // namespace ggufmill
