#pragma once
// Bound fields: an option is one entry of a table, bound to the member of a struct that holds it. The entry gives the
// option's description (FieldSpec: lint, schema, help, reference), reads its value into the member, and takes its
// default from a default-constructed struct.
//
//   struct Options { std::uint64_t shard_size = 0; };
//   map_of<Options>({field("shard_size", &Options::shard_size, bytes(), "Maximum size of a file.").example("20G")})
//
// Forms and fields are immutable once built and can be shared between threads.

#include <algorithm>
#include <concepts>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pipeline/config/fields.h"
#include "pipeline/config/yaml_reader.h"

namespace ggufmill {

// A function whose copies share what it captures; one without a value must not be called. Forms capture forms, so that
// copies of std::function alone would copy whole tables.
template <class Signature>
class SharedFunction {
 public:
  SharedFunction() = default;
  template <class Function>
  requires(std::is_constructible_v<std::function<Signature>, Function> && !std::is_null_pointer_v<Function>)
      SharedFunction(Function function)
      : function_(std::make_shared<const std::function<Signature>>(std::move(function))) {}

  explicit operator bool() const { return function_ != nullptr; }
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) const {
    return (*function_)(std::forward<Arguments>(arguments)...);
  }

 private:
  std::shared_ptr<const std::function<Signature>> function_;
};

// A kind of value, or an option, without its type: what Form and Field have in common. Their templates only supply the
// parts that depend on a type, so that little is compiled for each of them.
struct AnyForm {
  FieldSpec spec{};
  // Reads a node that has passed the lint of `spec` into the object at `into`: the value, which is replaced, or the
  // struct of an option. The error includes the place.
  SharedFunction<Status(const ConfigNode&, void* into)> read_into{};
  // Returns the value at `value` as a user would write it. Empty for kinds of values that have no default to show.
  SharedFunction<std::string(const void* value)> write_from{};

  AnyForm();
  AnyForm(const AnyForm&);
  AnyForm(AnyForm&&) noexcept;
  AnyForm& operator=(const AnyForm&);
  AnyForm& operator=(AnyForm&&) noexcept;
  ~AnyForm();

  void limit(double& member, double value);  // a default outside the new limits means that there is none
  void require();
  // Also stores the place of the value, in the member `offset` bytes into the object.
  void store_origin(std::size_t offset);
};

// A struct in which every option has its default.
template <class Options>
const Options& defaults_of() {
  static const Options defaults{};
  return defaults;
}

// The position of a member in its struct, in bytes.
template <class Options, class Value>
std::size_t offset_of(Value Options::*member) {
  const Options& options = defaults_of<Options>();
  return static_cast<std::size_t>(reinterpret_cast<const char*>(&(options.*member)) -
                                  reinterpret_cast<const char*>(&options));
}

// The functions that add to the description of a form or field.
template <class Self>
struct Described : AnyForm {
  Self&& doc(std::string_view text) && {
    spec.doc = text;
    return self();
  }
  Self&& example(std::string_view text) && {
    spec.example = text;
    return self();
  }
  Self&& at_least(double value) && {
    limit(spec.minimum, value);
    return self();
  }
  Self&& at_most(double value) && {
    limit(spec.maximum, value);
    return self();
  }
  // An additional check: returns the problem in one line, or an empty string.
  Self&& checked(std::function<std::string(const ConfigNode&)> check) && {
    spec.check = std::move(check);
    return self();
  }
  // A key of a map that an earlier version accepted: using it is an error with `help`.
  Self&& former_key(std::string_view name, std::string_view help) && {
    spec.former.push_back({std::string(name), std::string(help)});
    return self();
  }
  // Also stores the place of the value.
  template <class Options>
  Self&& at(Origin Options::*member) && {
    store_origin(offset_of(member));
    return self();
  }

 protected:
  Self&& self() { return static_cast<Self&&>(*this); }
};

// A kind of value: its description, and the function that reads it. `Value` has a default constructor.
template <class Value>
struct Form : Described<Form<Value>> {
  Form() = default;
  explicit Form(AnyForm form) : Described<Form<Value>>{std::move(form)} {}

  Result<Value> read(const ConfigNode& node) const {
    Value value{};
    BOOST_OUTCOME_TRY(this->read_into(node, &value));
    return value;
  }
  std::string write(const Value& value) const { return this->write_from ? this->write_from(&value) : std::string(); }

  // Sets the function that reads a value from a node: returns a Value, or a Result.
  template <class Reader>
  void read_with(Reader reader) {
    this->read_into = [reader = std::move(reader)](const ConfigNode& node, void* into) -> Status {
      BOOST_OUTCOME_TRY(*static_cast<Value*>(into), Result<Value>(reader(node)));
      return ok();
    };
  }
  // Sets the function that writes a value.
  template <class Writer>
  void write_with(Writer writer) {
    this->write_from = [writer = std::move(writer)](const void* value) -> std::string {
      return writer(*static_cast<const Value*>(value));
    };
  }
};

// An option of `Options`.
template <class Options>
struct Field : Described<Field<Options>> {
  explicit Field(AnyForm form) : Described<Field<Options>>{std::move(form)} {}

  Field&& required() && {
    this->require();
    return this->self();
  }
  // Exactly one option of the group must be present.
  Field&& group(std::string_view name) && {
    this->spec.group = name;
    return this->self();
  }
  // Arguments of a program: FieldSpec::is_for_program.
  Field&& for_program() && {
    this->spec.is_for_program = true;
    return this->self();
  }
  // A default that depends on the machine or on other options, as a user would write it.
  Field&& shown_default(std::string_view text) && {
    this->spec.default_text = text;
    return this->self();
  }
};

// The options of a struct, in order.
template <class Options>
struct Fields {
  template <std::same_as<Field<Options>>... Each>
  Fields(Each... fields) {
    list.reserve(sizeof...(fields));
    (list.push_back(std::move(fields)), ...);
  }
  explicit Fields(std::vector<AnyForm> fields) : list(std::move(fields)) {}

  std::vector<AnyForm> list;
};

// ---- simple values ----

Form<std::string> text();
Form<std::string> path();
Form<bool> boolean();
Form<std::uint64_t> bytes();
Form<Pattern> regex();
Form<double> number();
// The name of a type, or one of `words`, for which the value is null. Types are found among `types`.
Form<const TypeInfo*> tensor_type(Types types, std::vector<std::string> words = {});
// The name of an encoder, found among `types`.
Form<const EncoderMethod*> encoder_name(Types types);
// A value that is read later.
Form<ConfigNode> any_value();

Result<std::int64_t> integer_up_to(const ConfigNode& node, std::uint64_t most);

// Integers are not negative unless at_least() allows it.
template <class Integer = std::uint64_t>
Form<Integer> integer() {
  Form<Integer> form;
  form.spec.kind = FieldKind::kInteger;
  form.read_with([](const ConfigNode& node) -> Result<Integer> {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<Integer>::max());
    BOOST_OUTCOME_TRY(const std::int64_t value, integer_up_to(node, kMax));
    return static_cast<Integer>(value);
  });
  form.write_with([](const Integer& value) { return std::to_string(value); });
  return form;
}

// A form of words: `assign` sets a value to the meaning of a word, given by its index, and `equals`, unless empty,
// compares them.
AnyForm form_of_words(std::vector<std::string> words, std::function<void(std::size_t, void*)> assign,
                      std::function<bool(std::size_t, const void*)> equals);

// One of several words, each with its value.
template <class Value>
Form<Value> word(std::vector<std::pair<std::string, Value>> meanings) {
  std::vector<std::string> words;
  std::vector<Value> values;
  for (auto& [name, value] : meanings) {
    words.push_back(std::move(name));
    values.push_back(std::move(value));
  }
  std::function<bool(std::size_t, const void*)> equals;
  if constexpr (requires(const Value& a) { a == a; })
    equals = [values](std::size_t i, const void* value) { return values[i] == *static_cast<const Value*>(value); };
  return Form<Value>(form_of_words(
      std::move(words),
      [values = std::move(values)](std::size_t i, void* into) { *static_cast<Value*>(into) = values[i]; },
      std::move(equals)));
}

// One of the words of an enumeration, in its order.
template <class Enum, class Words>
Form<Enum> enumeration(const Words& words) {
  return Form<Enum>(form_of_words(
      std::vector<std::string>(std::begin(words), std::end(words)),
      [](std::size_t i, void* into) { *static_cast<Enum*>(into) = static_cast<Enum>(i); },
      [](std::size_t i, const void* value) { return static_cast<Enum>(i) == *static_cast<const Enum*>(value); }));
}

// ---- values made of values ----

// A form of lists, whose values are at `void*`: `clear` empties one, and `append` adds a value and returns it.
AnyForm form_of_lists(AnyForm item, void (*clear)(void*), void* (*append)(void*));

template <class Value>
Form<std::vector<Value>> list_of(Form<Value> item) {
  using List = std::vector<Value>;
  return Form<List>(form_of_lists(
      std::move(item), [](void* list) { static_cast<List*>(list)->clear(); },
      [](void* list) -> void* { return &static_cast<List*>(list)->emplace_back(); }));
}

// Values with any keys, in file order.
template <class Value>
using NamedValues = std::vector<std::pair<std::string, Value>>;

// The same, with the key of the value.
AnyForm form_of_dictionaries(AnyForm item, void (*clear)(void*), void* (*append)(void*, const std::string& key));

template <class Value>
Form<NamedValues<Value>> dictionary_of(Form<Value> item) {
  using List = NamedValues<Value>;
  return Form<List>(form_of_dictionaries(
      std::move(item), [](void* list) { static_cast<List*>(list)->clear(); },
      [](void* list, const std::string& key) -> void* {
        return &static_cast<List*>(list)->emplace_back(key, Value{}).second;
      }));
}

// The first of several forms of the same type that fits.
AnyForm first_that_fits(std::vector<AnyForm> forms);

template <class Value, std::same_as<Form<Value>>... Forms>
Form<Value> either(Forms... forms) {
  std::vector<AnyForm> list;
  list.reserve(sizeof...(forms));
  (list.push_back(std::move(forms)), ...);
  return Form<Value>(first_that_fits(std::move(list)));
}

// Converts the values of a form: `convert` takes a value, and the node if it needs the place, and returns another value
// or a Result.
template <class To, class From, class Convert>
Form<To> converted(Form<From> from, Convert convert) {
  Form<To> form;
  form.spec = std::move(from.spec);
  form.read_with(
      [read = std::move(from.read_into), convert = std::move(convert)](const ConfigNode& node) -> Result<To> {
        From value{};
        BOOST_OUTCOME_TRY(read(node, &value));
        if constexpr (std::is_invocable_v<Convert, From, const ConfigNode&>)
          return convert(std::move(value), node);
        else
          return convert(std::move(value));
      });
  return form;
}

// A value, or a list of at least `least` of them.
template <class Value>
Form<std::vector<Value>> one_or_more(Form<Value> item, std::string_view list_doc, double least = 0) {
  auto one = converted<std::vector<Value>>(item, [](Value value) { return std::vector<Value>{std::move(value)}; });
  return either<std::vector<Value>>(std::move(one), list_of(std::move(item)).at_least(least).doc(list_doc));
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

// The field of a member `offset` bytes into its struct, with its default or null.
AnyForm bound(AnyForm form, std::string_view name, std::string_view doc, std::size_t offset, const void* default_value);
// A form whose values are where `get` finds them in the object that is read into.
AnyForm within(AnyForm form, std::size_t offset, void* (*get)(void*));

// Returns the field of an option. Its default is the member's value in a default-constructed struct if the option
// accepts that value; an empty text and a number out of range mean that there is none.
template <class Options, class Value>
Field<Options> field(std::string_view name, Value Options::*member, Form<Value> form, std::string_view doc) {
  return Field<Options>(bound(std::move(form), name, doc, offset_of(member), &(defaults_of<Options>().*member)));
}

// An option without a default.
template <class Options, class Value>
Field<Options> field(std::string_view name, std::optional<Value> Options::*member, Form<Value> form,
                     std::string_view doc) {
  // A value is given, because clang 14 takes a nested struct with initializers for one without a default constructor.
  const auto emplace = [](void* value) -> void* {
    return &static_cast<std::optional<Value>*>(value)->emplace(Value{});
  };
  return Field<Options>(bound(within(std::move(form), 0, emplace), name, doc, offset_of(member), nullptr));
}

template <class Options, class Value>
Field<Options> field(std::string_view name, Value Options::*member, std::string_view doc) {
  return field(name, member, DefaultForm<Value>::make(), doc);
}

template <class Options, class Value>
Field<Options> field(std::string_view name, std::optional<Value> Options::*member, std::string_view doc) {
  return field(name, member, DefaultForm<Value>::make(), doc);
}

// A form of maps with these keys; `reset` gives every option its default.
AnyForm form_of_maps(std::vector<AnyForm> fields, void (*reset)(void*));
// A form of maps with the keys of both.
AnyForm form_of_both(AnyForm first, AnyForm second);

// Reads the entries of `node` that have a field. Returns all errors.
Status read_fields(const std::vector<AnyForm>& fields, const ConfigNode& node, void* into);

template <class Options>
Form<Options> map_of(Fields<Options> fields) {
  return Form<Options>(
      form_of_maps(std::move(fields.list), [](void* into) { *static_cast<Options*>(into) = Options{}; }));
}

// Adds the options of another map, which are read from the same node into one member.
template <class Options, class Member>
Form<Options> with_fields_of(Form<Options> form, Member Options::*member, Form<Member> other) {
  return Form<Options>(form_of_both(std::move(form), within(std::move(other), offset_of(member), nullptr)));
}

// Returns the fields of a struct as fields of another one that contains it. An optional member is created by the first
// of them that is present.
template <class Outer, class Member, class Inner>
Fields<Outer> fields_within(Member Outer::*member, Fields<Inner> fields) {
  void* (*get)(void*) = nullptr;
  if constexpr (std::is_same_v<Member, std::optional<Inner>>)
    get = [](void* object) -> void* {
      auto& inner = *static_cast<std::optional<Inner>*>(object);
      return inner ? &*inner : &inner.emplace();
    };
  std::vector<AnyForm> outer;
  for (AnyForm& field : fields.list) outer.push_back(within(std::move(field), offset_of(member), get));
  return Fields<Outer>(std::move(outer));
}

template <class Options>
Fields<Options> operator+(Fields<Options> fields, Fields<Options> more) {
  std::move(more.list.begin(), more.list.end(), std::back_inserter(fields.list));
  return fields;
}

// Like parse_option() and parse_document(), for the value at `into`.
Status parse_option(const std::string& option, const AnyForm& form, const std::string& text, const Types& types,
                    void* into);
Status parse_document(std::string_view text, const std::string& name, const AnyForm& form, const Types& types,
                      void* into);

// Reads the text of a command-line option such as "--threads" as a value of `form`. `types` are those that it can name.
// Fails with exit code 2.
template <class Value>
Result<Value> parse_option(const std::string& option, const Form<Value>& form, const std::string& text,
                           const Types& types = {}) {
  Value value{};
  BOOST_OUTCOME_TRY(parse_option(option, form, text, types, &value));
  return value;
}

// Reads a YAML text as a value of `form`, with all errors of the text at once. `types` are those that it can name.
// Fails with exit code 2.
template <class Value>
Result<Value> parse_document(std::string_view text, const std::string& name, const Form<Value>& form,
                             const Types& types = {}) {
  Value value{};
  BOOST_OUTCOME_TRY(parse_document(text, name, form, types, &value));
  return value;
}

}  // namespace ggufmill
