#pragma once
// Bound fields: an option is one entry of a table, bound to the member of a struct that holds it. The entry gives the
// option's description (FieldSpec: lint, schema, help, reference), reads its value into the member, and takes its
// default from a default-constructed struct.
//
//   struct Options { std::uint64_t shard_size = 0; };
//   map_of<Options>({field("shard_size", &Options::shard_size, bytes(), "Maximum size of a file.").example("20G")})
//
// Forms and fields are immutable once built and can be shared between threads.

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pipeline/config/fields.h"
#include "pipeline/config/yaml_reader.h"

namespace ggufmill {

// Returns true if `text` as a plain scalar passes the lint of `spec`.
bool is_valid_text(const std::string& text, const FieldSpec& spec);

// What forms and fields have in common: the description, and the functions that add to it.
template <class Self>
struct Described {
  FieldSpec spec{};

  Self&& doc(std::string text) && { return set(spec.doc, std::move(text)); }
  Self&& example(std::string text) && { return set(spec.example, std::move(text)); }
  Self&& at_least(double value) && { return limit(spec.minimum, value); }
  Self&& at_most(double value) && { return limit(spec.maximum, value); }
  // An additional check: returns the problem in one line, or an empty string.
  Self&& checked(std::function<std::string(const ConfigNode&)> check) && { return set(spec.check, std::move(check)); }

 protected:
  // A default outside the new limits means that there is none.
  Self&& limit(double& member, double value) {
    member = value;
    if (!spec.default_text.empty() && !is_valid_text(spec.default_text, spec)) spec.default_text.clear();
    return static_cast<Self&&>(*this);
  }
  template <class Member, class Value>
  Self&& set(Member& member, Value value) {
    member = std::move(value);
    return static_cast<Self&&>(*this);
  }
};

// A kind of value: its description, and the function that reads it.
template <class Value>
struct Form : Described<Form<Value>> {
  // Reads a node that has passed the lint of `spec`. The error includes the place.
  std::function<Result<Value>(const ConfigNode&)> read{};
  // Returns the value as a user would write it. Empty for kinds of values that have no default to show.
  std::function<std::string(const Value&)> write{};

  // Also stores the place of the value.
  template <class Options = Value>
  Form&& at(Origin Options::*member) && {
    read = [member, inner = std::move(read)](const ConfigNode& node) -> Result<Value> {
      BOOST_OUTCOME_TRY(Value value, inner(node));
      value.*member = origin_of(node);
      return value;
    };
    return std::move(*this);
  }
};

// An option of `Options`.
template <class Options>
struct Field : Described<Field<Options>> {
  // Reads a node that has passed the lint of `spec` into its member.
  std::function<Status(const ConfigNode&, Options&)> read{};

  Field&& required() && {
    this->spec.required = true;
    this->spec.default_text.clear();
    return std::move(*this);
  }
  // Exactly one option of the group must be present.
  Field&& group(std::string name) && { return this->set(this->spec.group, std::move(name)); }
  // A default that depends on the machine or on other options, as a user would write it.
  Field&& shown_default(std::string text) && { return this->set(this->spec.default_text, std::move(text)); }
  // Also stores the place of the value.
  Field&& at(Origin Options::*member) && {
    read = [member, inner = std::move(read)](const ConfigNode& node, Options& into) -> Status {
      into.*member = origin_of(node);
      return inner(node, into);
    };
    return std::move(*this);
  }
};

template <class Options>
using Fields = std::vector<Field<Options>>;

// ---- simple values ----

Form<std::string> text();
Form<std::string> path();
Form<bool> boolean();
Form<std::uint64_t> bytes();
Form<Pattern> regex();
Form<double> number();
// The name of a type, or one of `words`, for which the value is null. Types are found among `types`.
Form<const TypeInfo*> tensor_type(Types types, std::vector<std::string> words = {});
// A value that is read later.
Form<ConfigNode> any_value();

// Builds Form<Integer>::read and ::write without a copy for each type.
Result<std::int64_t> integer_up_to(const ConfigNode& node, std::uint64_t most);
// Returns the index of a word. `node` has passed the lint.
std::size_t index_of_word(const ConfigNode& node, std::span<const std::string> words);
// Returns the first alternative of a kOneOf whose lint `node` passes; the lint of the kOneOf has passed.
std::size_t matching_alternative(const ConfigNode& node, const FieldSpec& one_of);

// Integers are not negative unless at_least() allows it.
template <class Integer = std::uint64_t>
Form<Integer> integer() {
  Form<Integer> form;
  form.spec.kind = FieldKind::kInteger;
  form.read = [](const ConfigNode& node) -> Result<Integer> {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<Integer>::max());
    BOOST_OUTCOME_TRY(const std::int64_t value, integer_up_to(node, kMax));
    return static_cast<Integer>(value);
  };
  form.write = [](const Integer& value) { return std::to_string(value); };
  return form;
}

// One of several words, each with its value.
template <class Value>
Form<Value> word(std::vector<std::pair<std::string, Value>> meanings) {
  Form<Value> form;
  form.spec.kind = FieldKind::kEnum;
  std::vector<Value> values;
  for (auto& [name, value] : meanings) {
    form.spec.choices.push_back(name);
    values.push_back(value);
  }
  const std::vector<std::string> words = form.spec.choices;
  form.read = [words, values](const ConfigNode& node) -> Result<Value> { return values[index_of_word(node, words)]; };
  if constexpr (requires(const Value& a) { a == a; })
    form.write = [words, values](const Value& value) -> std::string {
      for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] == value) return words[i];
      return {};
    };
  return form;
}

// One of the words of an enumeration, in its order.
template <class Enum, class Words>
Form<Enum> enumeration(const Words& words) {
  std::vector<std::pair<std::string, Enum>> meanings;
  for (const auto& name : words) meanings.emplace_back(std::string(name), static_cast<Enum>(meanings.size()));
  return word<Enum>(std::move(meanings));
}

// ---- values made of values ----

template <class Value>
Form<std::vector<Value>> list_of(Form<Value> item) {
  Form<std::vector<Value>> form;
  form.spec.kind = FieldKind::kList;
  form.spec.item = {item.spec};
  form.read = [read = std::move(item.read)](const ConfigNode& node) -> Result<std::vector<Value>> {
    std::vector<Value> values;
    for (const ConfigNode& each : node.items) {
      BOOST_OUTCOME_TRY(Value value, read(each));
      values.push_back(std::move(value));
    }
    return values;
  };
  return form;
}

// Values with any keys, in file order.
template <class Value>
using NamedValues = std::vector<std::pair<std::string, Value>>;

template <class Value>
Form<NamedValues<Value>> dictionary_of(Form<Value> item) {
  Form<NamedValues<Value>> form;
  form.spec.kind = FieldKind::kDictionary;
  form.spec.item = {item.spec};
  form.read = [read = std::move(item.read)](const ConfigNode& node) -> Result<NamedValues<Value>> {
    NamedValues<Value> values;
    for (const ConfigNode::Entry& entry : node.entries) {
      BOOST_OUTCOME_TRY(Value value, read(entry.value));
      values.emplace_back(entry.key, std::move(value));
    }
    return values;
  };
  return form;
}

// The first of several forms that fits.
template <class Value>
Form<Value> either(std::vector<Form<Value>> forms) {
  Form<Value> form;
  form.spec.kind = FieldKind::kOneOf;
  for (const Form<Value>& each : forms) form.spec.alternatives.push_back(each.spec);
  form.read = [spec = form.spec, forms](const ConfigNode& node) -> Result<Value> {
    return forms[matching_alternative(node, spec)].read(node);
  };
  form.write = [forms](const Value& value) -> std::string {
    for (const Form<Value>& each : forms)
      if (const std::string text = each.write ? each.write(value) : ""; !text.empty() && is_valid_text(text, each.spec))
        return text;
    return {};
  };
  return form;
}

// Converts the values of a form: `convert` takes a value, and the node if it needs the place, and returns another value
// or a Result.
template <class To, class From, class Convert>
Form<To> converted(Form<From> from, Convert convert) {
  Form<To> form;
  form.spec = std::move(from.spec);
  form.read = [read = std::move(from.read), convert = std::move(convert)](const ConfigNode& node) -> Result<To> {
    BOOST_OUTCOME_TRY(From value, read(node));
    if constexpr (std::is_invocable_v<Convert, From, const ConfigNode&>)
      return convert(std::move(value), node);
    else
      return convert(std::move(value));
  };
  return form;
}

// A value, or a list of at least `least` of them.
template <class Value>
Form<std::vector<Value>> one_or_more(Form<Value> item, std::string list_doc, double least = 0) {
  auto one = converted<std::vector<Value>>(item, [](Value value) { return std::vector<Value>{std::move(value)}; });
  return either<std::vector<Value>>(
      {std::move(one), list_of(std::move(item)).at_least(least).doc(std::move(list_doc))});
}

// A value that stands for a struct with one member set, such as `gguf: PATH` for `gguf: {path: PATH}`.
template <class Options, class Value>
Form<Options> shorthand(Value Options::*member, Form<Value> form) {
  return converted<Options>(std::move(form), [member](Value value) -> Result<Options> {
    Options options;
    options.*member = std::move(value);
    return options;
  });
}

// ---- options ----

template <class Value>
struct DefaultForm;  // types without a usual form have none
template <>
struct DefaultForm<std::string> {
  static Form<std::string> make() { return text(); }
};
template <>
struct DefaultForm<bool> {
  static Form<bool> make() { return boolean(); }
};
template <>
struct DefaultForm<double> {
  static Form<double> make() { return number(); }
};
template <>
struct DefaultForm<Pattern> {
  static Form<Pattern> make() { return regex(); }
};
template <class Value>
requires std::is_integral_v<Value>
struct DefaultForm<Value> {
  static Form<Value> make() { return integer<Value>(); }
};
template <class Value>
struct DefaultForm<std::vector<Value>> {
  static Form<std::vector<Value>> make() { return list_of(DefaultForm<Value>::make()); }
};

// Returns the field of an option. Its default is the member's value in a default-constructed struct if the option
// accepts that value; an empty text and a number out of range mean that there is none.
template <class Options, class Value>
Field<Options> field(std::string name, Value Options::*member, Form<Value> form, std::string doc) {
  Field<Options> bound;
  bound.spec = std::move(form.spec);
  bound.spec.name = std::move(name);
  bound.spec.doc = std::move(doc);
  bound.read = [member, read = std::move(form.read)](const ConfigNode& node, Options& into) -> Status {
    BOOST_OUTCOME_TRY(into.*member, read(node));
    return ok();
  };
  const Options defaults{};
  const std::string text = form.write ? form.write(defaults.*member) : "";
  if (!text.empty() && is_valid_text(text, bound.spec)) bound.spec.default_text = text;
  return bound;
}

// An option without a default.
template <class Options, class Value>
Field<Options> field(std::string name, std::optional<Value> Options::*member, Form<Value> form, std::string doc) {
  form.write = nullptr;
  Field<Options> bound;
  bound.spec = std::move(form.spec);
  bound.spec.name = std::move(name);
  bound.spec.doc = std::move(doc);
  bound.read = [member, read = std::move(form.read)](const ConfigNode& node, Options& into) -> Status {
    BOOST_OUTCOME_TRY(into.*member, read(node));
    return ok();
  };
  return bound;
}

template <class Options, class Value>
Field<Options> field(std::string name, Value Options::*member, std::string doc) {
  return field(std::move(name), member, DefaultForm<Value>::make(), std::move(doc));
}

template <class Options, class Value>
Field<Options> field(std::string name, std::optional<Value> Options::*member, std::string doc) {
  return field(std::move(name), member, DefaultForm<Value>::make(), std::move(doc));
}

// A key that is described here and read elsewhere.
template <class Options>
Field<Options> described(FieldSpec spec) {
  Field<Options> bound;
  bound.spec = std::move(spec);
  bound.read = [](const ConfigNode&, Options&) -> Status { return ok(); };
  return bound;
}

// Reads the entries of `node` that have a field. Stops at the first error.
template <class Options>
Status read_fields(const Fields<Options>& fields, const ConfigNode& node, Options& into) {
  for (const Field<Options>& field : fields)
    if (const ConfigNode* value = node.find(field.spec.name)) {
      BOOST_OUTCOME_TRY(field.read(*value, into));
    }
  return ok();
}

template <class Options>
Form<Options> map_of(Fields<Options> fields) {
  Form<Options> form;
  form.spec.kind = FieldKind::kMap;
  for (const Field<Options>& field : fields) form.spec.fields.push_back(field.spec);
  form.read = [fields = std::move(fields)](const ConfigNode& node) -> Result<Options> {
    Options options;
    BOOST_OUTCOME_TRY(read_fields(fields, node, options));
    return options;
  };
  return form;
}

// Adds the options of another map, which are read from the same node into one member.
template <class Options, class Member>
Form<Options> with_fields_of(Form<Options> form, Member Options::*member, Form<Member> other) {
  for (const FieldSpec& spec : other.spec.fields) form.spec.fields.push_back(spec);
  form.read = [member, read = std::move(form.read),
               more = std::move(other.read)](const ConfigNode& node) -> Result<Options> {
    BOOST_OUTCOME_TRY(Options options, read(node));
    BOOST_OUTCOME_TRY(options.*member, more(node));
    return options;
  };
  return form;
}

// Returns the fields of a struct as fields of another one that contains it. An optional member is created by the first
// of them that is present.
template <class Outer, class Member, class Inner>
Fields<Outer> fields_within(Member Outer::*member, const Fields<Inner>& fields) {
  Fields<Outer> outer;
  for (const Field<Inner>& field : fields) {
    outer.emplace_back().spec = field.spec;
    outer.back().read = [member, read = field.read](const ConfigNode& node, Outer& into) -> Status {
      if constexpr (std::is_same_v<Member, std::optional<Inner>>) {
        if (!(into.*member)) (into.*member).emplace();
        return read(node, *(into.*member));
      } else {
        return read(node, into.*member);
      }
    };
  }
  return outer;
}

// Reads the text of a command-line option such as "--threads" as a value of `form`. Fails with exit code 2.
template <class Value>
Result<Value> parse_option(const std::string& option, const Form<Value>& form, const std::string& text) {
  const ConfigText shown{option, {option + " " + text}, false};
  Diagnostics errors;
  const std::optional<ConfigNode> node = read_yaml_value(option.size() + 1, shown, errors);
  if (node) lint(*node, form.spec, errors);
  if (!errors.empty()) return errors.together();
  return form.read(*node);
}

// Reads a YAML text as a value of `form`, with all errors of the text at once. `types` are those that it can name.
// Fails with exit code 2.
template <class Value>
Result<Value> parse_document(std::string_view text, const std::string& name, const Form<Value>& form,
                             const Types& types = {}) {
  Diagnostics errors;
  const std::optional<ConfigDocument> document = read_document(text, name, errors);
  if (document) lint(document->root, form.spec, errors, types);
  if (!errors.empty()) return errors.together();
  return form.read(document->root);
}

template <class Options>
Fields<Options> operator+(Fields<Options> fields, Fields<Options> more) {
  for (Field<Options>& field : more) fields.push_back(std::move(field));
  return fields;
}

}  // namespace ggufmill
