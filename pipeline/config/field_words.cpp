// Words for what a field holds: one source for messages, help, schema and reference page.

#include <fmt/format.h>

#include <cmath>

#include "pipeline/config/fields.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

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

std::string choice_words(const std::vector<std::string>& choices) {
  std::string out = choices.size() > 1 ? "one of " : "";
  for (std::size_t i = 0; i < choices.size(); ++i) out += (i ? ", " : "") + quoted_name(choices[i]);
  return out;
}

std::string alternative_words(const std::vector<FieldSpec>& alternatives) {
  std::string out;
  for (std::size_t i = 0; i < alternatives.size(); ++i) out += (i ? " or " : "") + value_words(alternatives[i]);
  return out;
}

}  // namespace

std::string value_words(const FieldSpec& spec) {
  switch (spec.kind) {
    case FieldKind::kString:
      return "a text";
    case FieldKind::kPath:
      return "a path";
    case FieldKind::kBool:
      return "true or false";
    case FieldKind::kInteger:
      return with_range("a whole number", spec);
    case FieldKind::kNumber:
      return with_range("a number", spec);
    case FieldKind::kBytes:
      return with_range("a size", spec);
    case FieldKind::kRegex:
      return "a regular expression";
    case FieldKind::kTypeName:
      return spec.choices.empty() ? "a tensor type" : "a tensor type or " + choice_words(spec.choices);
    case FieldKind::kEnum:
      return choice_words(spec.choices);
    case FieldKind::kAny:
      return "any value";
    case FieldKind::kList:
      return "a list";
    case FieldKind::kMap:
    case FieldKind::kDictionary:
      return "a map";
    case FieldKind::kOneOf:
      return alternative_words(spec.alternatives);
  }
  return {};
}

}  // namespace ggufmill
