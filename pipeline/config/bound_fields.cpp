#include "pipeline/config/bound_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

template <class Value>
Form<Value> scalar(FieldKind kind, Result<Value> (*read)(const ConfigNode&), std::string (*write)(const Value&)) {
  Form<Value> form;
  form.spec.kind = kind;
  form.read = read;
  if (write) form.write = write;
  return form;
}

Result<std::string> scalar_text(const ConfigNode& node) { return node.scalar; }
std::string same_text(const std::string& value) { return value; }

bool passes(const ConfigNode& node, const FieldSpec& spec) {
  Diagnostics found;
  lint(node, spec, found);
  return found.empty();
}

}  // namespace

Form<std::string> text() { return scalar<std::string>(FieldKind::kString, scalar_text, same_text); }

Form<std::string> path() { return scalar<std::string>(FieldKind::kPath, scalar_text, same_text); }

Form<bool> boolean() {
  return scalar<bool>(FieldKind::kBool, to_bool,
                      [](const bool& value) { return std::string(value ? "true" : "false"); });
}

Form<std::uint64_t> bytes() {
  return scalar<std::uint64_t>(FieldKind::kBytes, to_bytes,
                               [](const std::uint64_t& value) { return format_bytes(value); });
}

Form<Pattern> regex() { return scalar<Pattern>(FieldKind::kRegex, to_pattern, nullptr); }

Form<double> number() {
  return scalar<double>(FieldKind::kNumber, to_number, [](const double& value) { return fmt::format("{}", value); });
}

Form<const TypeInfo*> tensor_type(Types types, std::vector<std::string> words) {
  Form<const TypeInfo*> form;
  form.spec.kind = FieldKind::kTypeName;
  form.spec.choices = words;
  form.read = [types = std::move(types), words = std::move(words)](const ConfigNode& node) -> Result<const TypeInfo*> {
    return std::ranges::find(words, node.scalar) == words.end() ? types.find(node.scalar) : nullptr;
  };
  return form;
}

Form<ConfigNode> any_value() {
  Form<ConfigNode> form;
  form.spec.kind = FieldKind::kAny;
  form.read = [](const ConfigNode& node) -> Result<ConfigNode> { return node; };
  return form;
}

Result<std::int64_t> integer_up_to(const ConfigNode& node, std::uint64_t most) {
  BOOST_OUTCOME_TRY(const std::int64_t value, to_integer(node));
  if (value > 0 && static_cast<std::uint64_t>(value) > most)
    return error_at(node, fmt::format("{} is more than the limit of {}", quoted_name(node.scalar), most));
  return value;
}

std::size_t index_of_word(const ConfigNode& node, std::span<const std::string> words) {
  return static_cast<std::size_t>(std::ranges::find(words, node.scalar) - words.begin());
}

bool is_valid_text(const std::string& text, const FieldSpec& spec) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.scalar = text;
  return !text.empty() && passes(node, spec);
}

std::size_t matching_alternative(const ConfigNode& node, const FieldSpec& one_of) {
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < one_of.alternatives.size(); ++i)
    if (accepts_kind_of(node, one_of.alternatives[i])) fitting.push_back(i);
  if (fitting.empty()) return 0;
  // The lint does not know foreign types here, so that the last form is taken without it.
  const auto found = std::find_if(fitting.begin(), fitting.end() - 1,
                                  [&](std::size_t i) { return passes(node, one_of.alternatives[i]); });
  return *found;
}

}  // namespace ggufmill
