#include "pipeline/config/lint_scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "pipeline/core/text.h"
#include "pipeline/core/types.h"

namespace ggufmill {
namespace {

using Fault = std::optional<Error>;

// A number or a boolean in quotes is a text, unless a parameter stands in them: in `{ }` those need the quotes.
Fault lint_plain(const ConfigNode& node, const FieldSpec& spec) {
  if (!node.quoted || node.substituted) return {};
  return error_at(node,
                  fmt::format("expected {}, found the quoted text {}", value_words(spec), quoted_name(node.scalar)),
                  "remove the quotes");
}

Fault lint_range(const ConfigNode& node, const FieldSpec& spec, double value) {
  if (value >= spec.minimum && value <= spec.maximum) return {};
  return error_at(node, fmt::format("{} is not {}", quoted_name(node.scalar),
                                    spec.minimum == 0 && value < 0 ? "0 or more" : value_words(spec)));
}

template <class T>
Fault lint_number(const ConfigNode& node, const FieldSpec& spec, const Result<T>& value) {
  if (!value) return value.error();
  return lint_range(node, spec, static_cast<double>(value.value()));
}

Fault lint_path(const ConfigNode& node) {
  if (node.scalar.empty()) return error_at(node, "a path cannot be empty");
  if (node.scalar.find('\0') != std::string::npos) return error_at(node, "a path cannot hold a NUL character");
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
  if (is_choice(node, spec) || types.find(node.scalar)) return {};
  std::vector<std::string> names = spec.choices;
  for (const TypeInfo* type : types.all()) names.emplace_back(type->name);
  const std::string meant = did_you_mean(node.scalar, names);
  return error_at(node, fmt::format("unknown quantization type {}", quoted_name(node.scalar)),
                  (meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant)) + "`ggufmill types` lists them");
}

Fault lint_enum(const ConfigNode& node, const FieldSpec& spec) {
  if (is_choice(node, spec)) return {};
  const std::string meant = did_you_mean(node.scalar, spec.choices);
  return error_at(node, fmt::format("{} is not {}", quoted_name(node.scalar), value_words(spec)),
                  meant.empty() ? "" : fmt::format("did you mean '{}'?", meant));
}

}  // namespace

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
    case FieldKind::kEnum:
      return lint_enum(node, spec);
    default:
      return {};
  }
}

}  // namespace ggufmill
