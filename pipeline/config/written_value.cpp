#include "pipeline/config/written_value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/json.h"
#include "pipeline/core/metadata_keys.h"
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

constexpr std::size_t kMaxListDepth = 8;

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

// Returns a finite number. The words for infinity and NaN are not numbers.
std::optional<double> parse_float(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number) != std::from_chars_result{end, std::errc()}) return {};
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
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

std::string shown(const WrittenValue& written) { return quoted_name(written.text); }

Result<MetadataValue> integer_as(const WrittenValue& written, MetadataType type) {
  const auto whole = parse_whole(written.text);
  const IntegerRange* range = range_of(type);
  if (!whole)
    return error_at(written.origin,
                    fmt::format("{} is not an integer, but {} needs one", shown(written), metadata_type_name(type)));
  if (!holds(*range, *whole))
    return error_at(written.origin, fmt::format("{} does not fit {}: {} to {}", written.text, metadata_type_name(type),
                                                range->least, range->most));
  return metadata_unsigned(type, whole->bits);
}

// Converts a scalar to a type that is not an array.
Result<MetadataValue> scalar_as(const WrittenValue& written, MetadataType type) {
  if (written.kind != WrittenValue::Kind::kScalar)
    return error_at(written.origin, fmt::format("expected a single {}, not a list", metadata_type_name(type)));
  if (type == MetadataType::kString) {
    if (is_utf8(written.text)) return metadata_string(written.text);
    return error_at(written.origin, "the text is not UTF-8", "write it as UTF-8");
  }
  if (type == MetadataType::kBool) {
    const Result<bool> flag = parse_bool(written.text);
    if (flag) return metadata_bool(flag.value());
    return error_at(written.origin, fmt::format("{} is not true or false, but bool needs one of them", shown(written)));
  }
  if (range_of(type)) return integer_as(written, type);
  const auto number = parse_float(written.text);
  if (!number)
    return error_at(written.origin, fmt::format("{} is not a finite number, but {} needs one", shown(written),
                                                metadata_type_name(type)));
  if (type == MetadataType::kFloat32 && std::isinf(static_cast<float>(*number)))
    return error_at(written.origin, fmt::format("{} does not fit float32: at most 3.4028235e38", shown(written)));
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

// Returns a type that can represent two untyped items of one list.
MetadataType common(MetadataType a, MetadataType b) {
  if (a == b) return a;
  if ((range_of(a) || is_float(a)) && (range_of(b) || is_float(b))) {
    if (is_float(a) || is_float(b)) return MetadataType::kFloat32;
    return MetadataType::kInt64;
  }
  return MetadataType::kString;
}

// Builds a list from the events of a JSON document.
class ListSink : public JsonSink {
 public:
  bool wants(std::string_view, std::string_view) override { return true; }
  std::string take(const JsonEvent& event) override {
    using Kind = JsonEvent::Kind;
    if (event.kind == Kind::kArrayBegin) return open_.push_back({.kind = WrittenValue::Kind::kList}), std::string();
    if (event.kind == Kind::kArrayEnd) {
      WrittenValue list = std::move(open_.back());
      open_.pop_back();
      (open_.empty() ? list_.emplace() : open_.back().items.emplace_back()) = std::move(list);
      return {};
    }
    const bool is_scalar =
        event.kind == Kind::kString || event.kind == Kind::kNumber || event.text == "true" || event.text == "false";
    if (!is_scalar || open_.empty()) return "not a list of metadata values";
    open_.back().items.push_back({.text = std::string(event.text), .is_text = event.kind == Kind::kString});
    return {};
  }
  std::optional<WrittenValue> release() { return std::move(list_); }

 private:
  std::vector<WrittenValue> open_;
  std::optional<WrittenValue> list_;
};

std::optional<WrittenValue> json_list(const std::string& text) {
  if (!text.starts_with('[')) return {};
  ListSink sink;
  std::string_view rest = text;
  const JsonPieces pieces{{}, [&]() -> Result<std::string_view> { return std::exchange(rest, {}); }};
  if (!parse_json(pieces, JsonDialect::kStrict, &sink)) return {};
  return sink.release();
}

void place(WrittenValue& written, const Origin& origin) {  // NOLINT(misc-no-recursion): the depth is that of the text
  written.origin = origin;
  for (WrittenValue& item : written.items) place(item, origin);
}

// Returns the list that an argument or a file contains as JSON or YAML.
std::optional<WrittenValue> list_in(const WrittenValue& written) {
  std::optional<WrittenValue> list = json_list(written.text);
  if (!list && written.text.starts_with('[')) {
    ConfigTexts texts;
    Diagnostics errors;
    if (const auto node = read_yaml(written.text, "", texts, errors); node && errors.empty() && node->is_list())
      list = written_value(*node);
  }
  if (list) place(*list, written.origin);
  return list;
}

// `type` is a type followed by any number of [].
Result<MetadataValue> value_as(const WrittenValue& written, std::string_view type) {  // NOLINT(misc-no-recursion)
  if (!type.ends_with("[]")) return scalar_as(written, *metadata_type_named(type));
  if (written.may_be_list)
    if (const auto list = list_in(written)) return value_as(*list, type);
  if (written.kind != WrittenValue::Kind::kList)
    return error_at(written.origin, fmt::format("expected a list of type {}", type),
                    written.text.find_first_of("[],") == std::string::npos
                        ? fmt::format("write [{}]", written.text)
                        : "write [\"a\", \"b\"], with texts in quotes");
  const std::string_view element = type.substr(0, type.size() - 2);
  std::vector<MetadataValue> items;
  for (const WrittenValue& item : written.items) {
    auto value = value_as(item, element);
    if (!value && element.ends_with("[]") && item.kind == WrittenValue::Kind::kScalar)
      value.error().help = fmt::format("write lists in the list: [[{}]]", item.text);
    BOOST_OUTCOME_TRY(items.emplace_back(), std::move(value));
  }
  return metadata_array(element.ends_with("[]") ? MetadataType::kArray : *metadata_type_named(element), items);
}

Result<MetadataValue> natural_list(const WrittenValue& written) {
  std::optional<MetadataType> element;
  for (const WrittenValue& item : written.items) {
    if (item.kind != WrittenValue::Kind::kScalar)
      return error_at(item.origin, "a list of lists needs a type", "write {type: uint32[][], value: ...}");
    element = element ? common(*element, natural_type(item)) : natural_type(item);
  }
  if (element) return value_as(written, fmt::format("{}[]", metadata_type_name(*element)));
  return error_at(written.origin, "the type of an empty list is unknown", "write {type: string[], value: []}");
}

constexpr std::pair<std::string_view, std::string_view> kShortNames[] = {
    {"u8", "uint8"},   {"i8", "int8"},   {"u16", "uint16"},  {"i16", "int16"},   {"u32", "uint32"}, {"i32", "int32"},
    {"u64", "uint64"}, {"i64", "int64"}, {"f32", "float32"}, {"f64", "float64"}, {"str", "string"}};

// Returns the full name of a type that a user wrote; empty if there is none.
std::string full_name_of(std::string_view type) {
  std::string lists;
  while (type.ends_with(']') && lists.size() < 2 * kMaxListDepth) {
    lists += "[]";
    if (type.ends_with("[]"))
      type.remove_suffix(2);
    else if (type.starts_with('['))
      type = type.substr(1, type.size() - 2);
    else
      return {};
  }
  for (const auto& [brief, name] : kShortNames)
    if (type == brief) type = name;
  const auto known = metadata_type_named(type);
  return !known || *known == MetadataType::kArray ? std::string() : std::string(type) + lists;
}

}  // namespace

Result<MetadataValue> value_of(const WrittenValue& written, std::string_view type, const Origin& type_origin) {
  const std::string name = full_name_of(type);
  if (!name.empty()) return value_as(written, name);
  return error_at(type_origin, fmt::format("unknown metadata type '{}'", type),
                  fmt::format("types: {}; arrays: string[], uint32[][]", type_choices()));
}

Result<MetadataValue> value_of(const WrittenValue& written) {
  if (written.may_be_list)
    if (const auto list = json_list(written.text)) return natural_list(*list);
  if (written.kind == WrittenValue::Kind::kList) return natural_list(written);
  if (written.kind != WrittenValue::Kind::kScalar) return error_at(written.origin, "a value is missing here");
  return scalar_as(written, natural_type(written));
}

Result<MetadataValue> value_for(const std::string& key, const WrittenValue& written, const MetadataValue* before) {
  const auto is_list = [&] {
    return written.kind == WrittenValue::Kind::kList || (written.may_be_list && list_in(written));
  };
  std::string type = before ? full_type_name(*before) : std::string(known_type(key, is_list()));
  if (type.starts_with("array")) type.clear();  // no item has an element
  if (written.kind == WrittenValue::Kind::kOther) return error_at(written.origin, key + ": a value is missing here");
  auto value = type.empty() ? value_of(written) : value_as(written, type);
  if (value) return value;
  Error error = std::move(value).error();
  error.what = fmt::format("{}: {}", key, error.what);
  if (type.empty() && written.origin.where.empty() && !error.help.empty())
    error.help = fmt::format("write {0}:TYPE as the key, for example {0}:[str] or {0}:[[u32]]", key);
  if (error.help.empty() && !type.empty())
    error.help =
        fmt::format("{} {}; to give it another type, write {}", before ? "it has type" : "it is known as", type,
                    written.origin.where.empty() ? key + ":TYPE as the key" : "{type: TYPE, value: VALUE}");
  return error;
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
