#include "pipeline/config/bound_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

template <class Value>
Form<Value> scalar(FieldKind kind, Result<Value> (*read)(const ConfigNode&), std::string (*write)(const Value&)) {
  Form<Value> form;
  form.spec.kind = kind;
  form.read_with(read);
  if (write) form.write_with(write);
  return form;
}

Result<std::string> scalar_text(const ConfigNode& node) { return node.scalar; }
std::string same_text(const std::string& value) { return value; }

bool passes(const ConfigNode& node, const FieldSpec& spec) {
  Diagnostics found;
  lint(node, spec, found);
  return found.empty();
}

// Returns true if `text` as a plain scalar passes the lint of `spec`.
bool is_valid_text(const std::string& text, const FieldSpec& spec) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.scalar = text;
  return !text.empty() && passes(node, spec);
}

// Returns the index of a word. `node` has passed the lint.
std::size_t index_of_word(const ConfigNode& node, const std::vector<std::string>& words) {
  return static_cast<std::size_t>(std::ranges::find(words, node.scalar) - words.begin());
}

// Returns the first form whose lint `node` passes; the lint of a kOneOf of them has passed.
const AnyForm& form_that_fits(const ConfigNode& node, const std::vector<AnyForm>& forms) {
  std::vector<const AnyForm*> fitting;
  for (const AnyForm& form : forms)
    if (accepts_kind_of(node, form.spec)) fitting.push_back(&form);
  if (fitting.empty()) return forms.front();
  // The lint does not know foreign types here, so that the last form is taken without it.
  const auto found =
      std::find_if(fitting.begin(), fitting.end() - 1, [&](const AnyForm* form) { return passes(node, form->spec); });
  return **found;
}

// Adds the errors of `status`, if any.
void note(const Status& status, Diagnostics& errors) {
  if (!status) errors.add(status.error());
}

Status all_of(const Diagnostics& errors) {
  if (!errors.empty()) return errors.together();
  return ok();
}

void* at_offset(void* object, std::size_t offset) { return static_cast<char*>(object) + offset; }

}  // namespace

AnyForm::AnyForm() = default;
AnyForm::AnyForm(const AnyForm&) = default;
AnyForm::AnyForm(AnyForm&&) noexcept = default;
AnyForm& AnyForm::operator=(const AnyForm&) = default;
AnyForm& AnyForm::operator=(AnyForm&&) noexcept = default;
AnyForm::~AnyForm() = default;

void AnyForm::limit(double& member, double value) {
  member = value;
  if (!spec.default_text.empty() && !is_valid_text(spec.default_text, spec)) spec.default_text.clear();
}

void AnyForm::require() {
  spec.required = true;
  spec.default_text.clear();
}

void AnyForm::store_origin(std::size_t offset) {
  read_into = [offset, read = std::move(read_into)](const ConfigNode& node, void* into) {
    Status status = read(node, into);
    *static_cast<Origin*>(at_offset(into, offset)) = origin_of(node);
    return status;
  };
}

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
  form.read_with(
      [types = std::move(types), words = std::move(words)](const ConfigNode& node) -> Result<const TypeInfo*> {
        return std::ranges::find(words, node.scalar) == words.end() ? types.find(node.scalar) : nullptr;
      });
  return form;
}

Form<const EncoderMethod*> encoder_name(Types types) {
  Form<const EncoderMethod*> form;
  form.spec.kind = FieldKind::kEncoderName;
  form.read_with([types = std::move(types)](const ConfigNode& node) -> Result<const EncoderMethod*> {
    return types.find_encoder(node.scalar);
  });
  return form;
}

Form<ConfigNode> any_value() {
  Form<ConfigNode> form;
  form.spec.kind = FieldKind::kAny;
  form.read_with([](const ConfigNode& node) { return node; });
  return form;
}

Result<std::int64_t> integer_up_to(const ConfigNode& node, std::uint64_t most) {
  BOOST_OUTCOME_TRY(const std::int64_t value, to_integer(node));
  if (value > 0 && static_cast<std::uint64_t>(value) > most)
    return error_at(node, fmt::format("{} is more than the limit of {}", quoted_name(node.scalar), most));
  return value;
}

AnyForm form_of_words(std::vector<std::string> words, std::function<void(std::size_t, void*)> assign,
                      std::function<bool(std::size_t, const void*)> equals) {
  AnyForm form;
  form.spec.kind = FieldKind::kEnum;
  form.spec.choices = words;
  if (equals)
    form.write_from = [words, equals = std::move(equals)](const void* value) -> std::string {
      for (std::size_t i = 0; i < words.size(); ++i)
        if (equals(i, value)) return words[i];
      return {};
    };
  form.read_into = [words = std::move(words), assign = std::move(assign)](const ConfigNode& node,
                                                                          void* into) -> Status {
    assign(index_of_word(node, words), into);
    return ok();
  };
  return form;
}

AnyForm form_of_lists(AnyForm item, void (*clear)(void*), void* (*append)(void*)) {
  AnyForm form;
  form.spec.kind = FieldKind::kList;
  form.spec.item.push_back(std::move(item.spec));
  form.read_into = [clear, append, read = std::move(item.read_into)](const ConfigNode& node, void* into) -> Status {
    clear(into);
    Diagnostics errors;
    for (const ConfigNode& each : node.items) note(read(each, append(into)), errors);
    return all_of(errors);
  };
  return form;
}

AnyForm form_of_dictionaries(AnyForm item, void (*clear)(void*), void* (*append)(void*, const std::string& key)) {
  AnyForm form;
  form.spec.kind = FieldKind::kDictionary;
  form.spec.item.push_back(std::move(item.spec));
  form.read_into = [clear, append, read = std::move(item.read_into)](const ConfigNode& node, void* into) -> Status {
    clear(into);
    Diagnostics errors;
    for (const ConfigNode::Entry& entry : node.entries) note(read(entry.value, append(into, entry.key)), errors);
    return all_of(errors);
  };
  return form;
}

AnyForm first_that_fits(std::vector<AnyForm> forms) {
  AnyForm form;
  form.spec.kind = FieldKind::kOneOf;
  for (const AnyForm& each : forms) form.spec.alternatives.push_back(each.spec);
  const auto shared = std::make_shared<const std::vector<AnyForm>>(std::move(forms));
  form.write_from = [shared](const void* value) -> std::string {
    for (const AnyForm& each : *shared)
      if (std::string text = each.write_from ? each.write_from(value) : ""; is_valid_text(text, each.spec)) return text;
    return {};
  };
  form.read_into = [shared](const ConfigNode& node, void* into) {
    return form_that_fits(node, *shared).read_into(node, into);
  };
  return form;
}

AnyForm bound(AnyForm form, std::string_view name, std::string_view doc, std::size_t offset,
              const void* default_value) {
  form.spec.name = name;
  form.spec.doc = doc;
  if (default_value && form.write_from)
    if (std::string text = form.write_from(default_value); is_valid_text(text, form.spec))
      form.spec.default_text = std::move(text);
  return within(std::move(form), offset, nullptr);
}

AnyForm within(AnyForm form, std::size_t offset, void* (*get)(void*)) {
  form.write_from = {};
  form.read_into = [offset, get, read = std::move(form.read_into)](const ConfigNode& node, void* into) {
    void* const member = at_offset(into, offset);
    return read(node, get ? get(member) : member);
  };
  return form;
}

AnyForm form_of_maps(std::vector<AnyForm> fields, void (*reset)(void*)) {
  AnyForm form;
  form.spec.kind = FieldKind::kMap;
  for (AnyForm& field : fields) {
    FieldSpec name_only{.name = field.spec.name};  // all that reading needs
    form.spec.fields.push_back(std::exchange(field.spec, std::move(name_only)));
  }
  form.read_into = [reset, fields = std::move(fields)](const ConfigNode& node, void* into) -> Status {
    reset(into);
    return read_fields(fields, node, into);
  };
  return form;
}

AnyForm form_of_both(AnyForm first, AnyForm second) {
  std::ranges::move(second.spec.fields, std::back_inserter(first.spec.fields));
  first.read_into = [read = std::move(first.read_into), more = std::move(second.read_into)](const ConfigNode& node,
                                                                                            void* into) -> Status {
    Diagnostics errors;
    note(read(node, into), errors);
    note(more(node, into), errors);
    return all_of(errors);
  };
  return first;
}

Status read_fields(const std::vector<AnyForm>& fields, const ConfigNode& node, void* into) {
  Diagnostics errors;
  for (const AnyForm& field : fields)
    if (const ConfigNode* value = node.find(field.spec.name)) note(field.read_into(*value, into), errors);
  return all_of(errors);
}

Status parse_option(const std::string& option, const AnyForm& form, const std::string& text, const Types& types,
                    void* into) {
  const ConfigText shown{option, {option + " " + text}, false};
  Diagnostics errors;
  const std::optional<ConfigNode> node = read_yaml_value(option.size() + 1, shown, errors);
  if (node) lint(*node, form.spec, errors, types);
  if (!errors.empty()) return errors.together();
  return form.read_into(*node, into);
}

Status parse_document(std::string_view text, const std::string& name, const AnyForm& form, const Types& types,
                      void* into) {
  Diagnostics errors;
  const std::optional<ConfigDocument> document = read_document(text, name, errors);
  if (document) lint(document->root, form.spec, errors, types);
  if (!errors.empty()) return errors.together();
  return form.read_into(document->root, into);
}

}  // namespace ggufmill
