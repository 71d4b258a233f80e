// Field values: parsing, checks and descriptions.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "pipeline/config/fields.h"
#include "pipeline/core/encoder.h"
#include "pipeline/core/text.h"
#include "pipeline/core/types.h"

namespace ggufmill {
namespace {

Error not_a(const ConfigNode& node, std::string_view kind) {
  return error_at(node, fmt::format("{} is not {}", quoted_name(node.scalar), kind));
}

template <class T>
Result<T> parse_whole(const ConfigNode& node, std::string_view kind) {
  T value{};
  const char* end = node.scalar.data() + node.scalar.size();
  const auto [stop, error] = std::from_chars(node.scalar.data(), end, value);
  if (node.is_scalar() && stop == end && error == std::errc::result_out_of_range)
    return error_at(node, fmt::format("{} does not fit into 64 bits", quoted_name(node.scalar)));
  if (!node.is_scalar() || error != std::errc() || stop != end) return not_a(node, kind);
  return value;
}

// Returns the column at which the text of a scalar begins in its source line if it appears there verbatim; otherwise 0.
int column_of_text(const ConfigNode& node) {
  if (!node.text || node.position.line < 1 || node.position.line > static_cast<int>(node.text->lines.size())) return 0;
  const std::string& line = node.text->lines[node.position.line - 1];
  const std::size_t begin = node.position.column - 1 + (node.quoted ? 1 : 0);
  return begin <= line.size() && line.compare(begin, node.scalar.size(), node.scalar) == 0 ? static_cast<int>(begin) + 1
                                                                                           : 0;
}

std::string limit_text(const FieldSpec& spec, double limit) {
  if (spec.kind == FieldKind::kBytes) return format_bytes(static_cast<std::uint64_t>(limit));
  return fmt::format("{}", limit);
}

std::string with_range(std::string noun, const FieldSpec& spec) {
  if (std::isfinite(spec.maximum))
    return fmt::format("{} from {} to {}", noun, limit_text(spec, spec.minimum), limit_text(spec, spec.maximum));
  if (spec.minimum != 0) return fmt::format("{} of at least {}", noun, limit_text(spec, spec.minimum));
  return noun;
}

std::string describe_choices(const std::vector<std::string>& choices) {
  std::string out = choices.size() > 1 ? "one of " : "";
  for (std::size_t i = 0; i < choices.size(); ++i) out += (i ? ", " : "") + quoted_name(choices[i]);
  return out;
}

std::string describe_alternatives(const std::vector<FieldSpec>& alternatives) {
  std::string out;
  for (std::size_t i = 0; i < alternatives.size(); ++i) out += (i ? " or " : "") + describe_value(alternatives[i]);
  return out;
}

using Fault = std::optional<Error>;

// A quoted number or boolean is text, unless it contains a parameter: inside `{ }`, parameters need the quotes.
Fault lint_plain(const ConfigNode& node, const FieldSpec& spec) {
  if (!node.quoted || node.substituted) return {};
  return error_at(
      node, fmt::format("expected {}, found the quoted string {}", describe_value(spec), quoted_name(node.scalar)),
      "remove the quotes");
}

Fault lint_range(const ConfigNode& node, const FieldSpec& spec, double value) {
  if (value >= spec.minimum && value <= spec.maximum) return {};
  return error_at(node, fmt::format("{} is not {}", quoted_name(node.scalar),
                                    spec.minimum == 0 && value < 0 ? "0 or more" : describe_value(spec)));
}

template <class T>
Fault lint_number(const ConfigNode& node, const FieldSpec& spec, const Result<T>& value) {
  if (!value) return value.error();
  return lint_range(node, spec, static_cast<double>(value.value()));
}

Fault lint_path(const ConfigNode& node) {
  if (node.scalar.empty()) return error_at(node, "a path cannot be empty");
  if (node.scalar.find('\0') != std::string::npos) return error_at(node, "a path cannot contain a NUL character");
  return {};
}

Fault lint_bool(const ConfigNode& node) {
  const Result<bool> value = to_bool(node);
  return value ? Fault{} : value.error();
}

Fault lint_regex(const ConfigNode& node) {
  const Result<Pattern> pattern = to_pattern(node);
  return pattern ? Fault{} : pattern.error();
}

bool is_choice(const ConfigNode& node, const FieldSpec& spec) {
  return std::find(spec.choices.begin(), spec.choices.end(), node.scalar) != spec.choices.end();
}

Fault lint_type(const ConfigNode& node, const FieldSpec& spec, const Types& types) {
  if (is_choice(node, spec) || types.find_choice(node.scalar)) return {};
  const Error error = unknown_type(node.scalar, types, spec.choices);
  return error_at(node, error.what, error.help);
}

Fault lint_encoder(const ConfigNode& node, const Types& types) {
  if (types.find_encoder(node.scalar)) return {};
  return error_at(node, fmt::format("unknown encoder {}", quoted_name(node.scalar)),
                  unknown_encoder_help(node.scalar, types));
}

Fault lint_enum(const ConfigNode& node, const FieldSpec& spec) {
  if (is_choice(node, spec)) return {};
  const std::string meant = did_you_mean(node.scalar, spec.choices);
  return error_at(node, fmt::format("{} is not {}", quoted_name(node.scalar), describe_value(spec)),
                  meant.empty() ? "" : fmt::format("did you mean '{}'?", meant));
}

}  // namespace

Result<bool> to_bool(const ConfigNode& node) {
  Result<bool> value = parse_bool(node.scalar);
  if (value) return value;
  return error_at(node, value.error().what, value.error().help);
}

Result<std::int64_t> to_integer(const ConfigNode& node) { return parse_whole<std::int64_t>(node, "an integer"); }

Result<double> to_number(const ConfigNode& node) {
  Result<double> value = parse_whole<double>(node, "a number");
  if (value && !std::isfinite(value.value())) return not_a(node, "a number");
  return value;
}

Result<std::uint64_t> to_bytes(const ConfigNode& node) {
  Result<std::uint64_t> bytes = parse_bytes(node.scalar);
  if (bytes) return bytes;
  return error_at(node, bytes.error().what, bytes.error().help);
}

Result<Pattern> to_pattern(const ConfigNode& node) {
  std::size_t fault_at = 0;
  Result<Pattern> pattern = Pattern::compile(node.scalar, &fault_at);
  if (pattern) return pattern;
  const Error& error = pattern.error();
  const int column = column_of_text(node);
  if (column == 0) return error_at(node, fmt::format("{} {}", error.what, error.detail), error.help);
  if (fault_at == 0) return error_at(node, error.what, error.help);
  return error_at(node.text, {node.position.line, column + static_cast<int>(fault_at), 1}, error.what, error.help);
}

std::string describe_value(const FieldSpec& spec) {
  switch (spec.kind) {
    case FieldKind::kString:
      return "a string";
    case FieldKind::kPath:
      return "a path";
    case FieldKind::kBool:
      return "true or false";
    case FieldKind::kInteger:
      return with_range("an integer", spec);
    case FieldKind::kNumber:
      return with_range("a number", spec);
    case FieldKind::kBytes:
      return with_range("a size", spec);
    case FieldKind::kRegex:
      return "a regular expression";
    case FieldKind::kTypeName:
      return spec.choices.empty() ? "a tensor type" : "a tensor type or " + describe_choices(spec.choices);
    case FieldKind::kEncoderName:
      return "the name of an encoder";
    case FieldKind::kEnum:
      return describe_choices(spec.choices);
    case FieldKind::kAny:
      return "any value";
    case FieldKind::kList:
      return "a list";
    case FieldKind::kMap:
    case FieldKind::kDictionary:
      return "a map";
    case FieldKind::kOneOf:
      return describe_alternatives(spec.alternatives);
  }
  return {};
}

std::optional<Error> lint_scalar(const ConfigNode& node, const FieldSpec& spec, const Types& types) {
  const bool plain =
      spec.kind == FieldKind::kBool || spec.kind == FieldKind::kInteger || spec.kind == FieldKind::kNumber;
  if (plain) {
    if (Fault fault = lint_plain(node, spec)) return fault;
  }
  switch (spec.kind) {
    case FieldKind::kPath:
      return lint_path(node);
    case FieldKind::kBool:
      return lint_bool(node);
    case FieldKind::kInteger:
      return lint_number(node, spec, to_integer(node));
    case FieldKind::kNumber:
      return lint_number(node, spec, to_number(node));
    case FieldKind::kBytes:
      return lint_number(node, spec, to_bytes(node));
    case FieldKind::kRegex:
      return lint_regex(node);
    case FieldKind::kTypeName:
      return lint_type(node, spec, types);
    case FieldKind::kEncoderName:
      return lint_encoder(node, types);
    case FieldKind::kEnum:
      return lint_enum(node, spec);
    default:
      return {};
  }
}

}  // namespace ggufmill
