#pragma once
// An operation: something that a user can ask for, declared once, in a file of this folder. From the declaration come
// the verb with its flags, help, manual page and completion, the call of the C interface (ggufmill_call()), the
// function of the Python module, and the reference page. An option is one member of the request and one row.
//
//   struct HashRequest {
//     std::string path{};
//     bool tensors = true;
//   };
//   OperationSpec hash_operation() {
//     return operation(OperationOf<HashRequest, Hashes>{
//         .name = "hash",
//         ...
//         .options = {option("path", &HashRequest::path, path(), "the model").word("MODEL"),
//                     option("tensors", &HashRequest::tensors, "also hash each tensor")},
//         .result = {result("model", &Hashes::model, "path of the model")},
//         .run = run_hash,
//         .print = print_hashes});
//   }
//
// In the texts of a declaration, @NAME stands for an option, as its user writes it (--max-rmse, max_rmse=), and @error3
// for the failure with exit code 3 (exit code 3, `VerificationError`), capitalized in @Error3. Errors refer to options
// by option_reference().

#include <atomic>
#include <boost/json.hpp>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/api/context.h"
#include "pipeline/api/table.h"
#include "pipeline/config/bound_fields.h"
#include "pipeline/report/report.h"

namespace ggufmill {

// Purpose of an operation; `ggufmill --help` lists them by group, in this order.
enum class OperationGroup { kConvert, kInspect, kEdit, kChoose, kCluster, kReference };

// ---- options ----

// A number, kept as the user wrote it.
Form<std::string> number_as_text();

// A flag without a value that stands for a value of its option: --no-layer for `tensors: false`.
struct OptionFlag {
  std::string name;   // "no-layer"
  std::string value;  // as in YAML; a list adds to the values of the option
  std::string doc;
  // The flag has a value, which is added to a list, as an object with `value` as its key if that is not empty. The
  // values of all such flags of an option stay in the order given.
  bool has_value = false;
};

// An option without the type of its request. Its name is a key of JSON and a parameter in Python.
struct OperationOption {
  enum class Place {
    kNamed,
    kWord,      // a word of the command line without a flag, or if it is a list, all further words; a positional
                // parameter in Python
    kEachWord,  // the same; the verb accepts several words and carries the operation out for each
    kChoice,    // the flag that chooses the operation (see SharedVerb), and a positional parameter in Python
  };

  explicit OperationOption(AnyForm form) : field(std::move(form)) {}

  const std::string& name() const { return field.spec.name; }
  std::string flag() const;  // "max-rmse", without the hyphens before it
  bool is_word() const { return place == Place::kWord || place == Place::kEachWord; }
  bool is_positional() const { return place != Place::kNamed; }  // in Python
  bool is_list() const;                                          // it may be given several times

  AnyForm field;
  Place place = Place::kNamed;
  std::string shown_word{};         // a word or a required value, in the usage: "FILE"
  std::string other_flag{};         // replaces the name on the command line
  char letter = '\0';               // of a short flag: -q
  std::vector<OptionFlag> flags{};  // instead of a flag with a value
  bool zero_is_none = false;        // in JSON, 0 is the same as no value
  std::string if_several{};         // help of the error if the verb is given several words; empty: allowed
  bool programs_only = false;       // the verb has another way
  bool command_line_only = false;   // kept for scripts that call another program
  bool words_are_replaced = false;  // with it, the command line needs no words
};

// The position of a base in a class, in bytes.
template <class Class, class Base>
std::size_t offset_of_base() {
  const Class& object = defaults_of<Class>();
  return static_cast<std::size_t>(reinterpret_cast<const char*>(static_cast<const Base*>(&object)) -
                                  reinterpret_cast<const char*>(&object));
}

// An option of `Request`.
template <class Request>
struct Option : OperationOption {
  using Self = Option;

  explicit Option(Field<Request> bound) : OperationOption(std::move(bound)) {}
  // An option of a base of the request.
  template <class Base>
  requires(std::derived_from<Request, Base> && !std::same_as<Request, Base>)
      Option(Option<Base> base)  // NOLINT(google-explicit-constructor): rows of both are in one list
      : OperationOption(std::move(base)) {
    field = within(std::move(field), offset_of_base<Request, Base>(), nullptr);
  }

  // A word of the command line, required. `shown` is its name in the usage.
  Self&& word(std::string_view shown) && { return std::move(*this).place_at(Place::kWord, shown); }
  Self&& optional_word(std::string_view shown) && {
    place = Place::kWord;
    shown_word = shown;
    return std::move(*this);
  }
  Self&& each_word(std::string_view shown) && { return std::move(*this).place_at(Place::kEachWord, shown); }
  // The value of the flag that chooses the operation, required. `shown` is the value's name in the usage.
  Self&& choice(std::string_view flag_name, std::string_view shown) && {
    other_flag = flag_name;
    return std::move(*this).place_at(Place::kChoice, shown);
  }
  // `shown` is the name of the value in the usage.
  Self&& required(std::string_view shown) && {
    shown_word = shown;
    field.require();
    return std::move(*this);
  }
  Self&& short_flag(char name) && {
    letter = name;
    return std::move(*this);
  }
  Self&& on_command_line(std::string_view flag_name) && {
    other_flag = flag_name;
    return std::move(*this);
  }
  Self&& as_flags(std::vector<OptionFlag> list) && {
    flags = std::move(list);
    return std::move(*this);
  }
  Self&& or_zero() && {
    zero_is_none = true;
    return std::move(*this);
  }
  Self&& not_with_several(std::string_view help) && {
    if_several = help;
    return std::move(*this);
  }
  Self&& only_on_command_line() && {
    command_line_only = true;
    return std::move(*this);
  }
  Self&& only_for_programs() && {
    programs_only = true;
    return std::move(*this);
  }
  Self&& replaces_words() && {
    words_are_replaced = true;
    return std::move(*this);
  }
  Self&& example(std::string_view text) && {
    field.spec.example = text;
    return std::move(*this);
  }

 private:
  Self&& place_at(Place where, std::string_view shown) && {
    place = where;
    shown_word = shown;
    field.require();
    return std::move(*this);
  }
};

// The same arguments as field().
template <class Request, class Value, class... More>
Option<Request> option(std::string_view name, Value Request::*member, More... more) {
  return Option<Request>(field(name, member, std::move(more)...));
}

// Adds options of a base of the request.
template <class Request, class Base>
std::vector<Option<Request>> operator+(std::vector<Option<Request>> options, std::vector<Option<Base>> more) {
  for (Option<Base>& each : more) options.push_back(std::move(each));
  return options;
}

// ---- results ----

// A member of a result.
struct ResultMember {
  std::string name, doc;
  // Adds the member to an object, unless the result at `value` has none.
  std::function<void(const void* value, boost::json::object& into)> write;
  std::string shape{};         // of a list of objects: "[{level, where}]"
  std::string when{};          // condition under which results have it: "with @spec"; empty: always
  bool none_if_empty = false;  // in Python, an empty text is None
  bool command_line_only = false;
};

// The members of a result, in order, or a function that writes all of them piece by piece.
template <class Value>
struct ResultForm {
  std::vector<ResultMember> members{};
  void (*write)(const Value& value, const TextSink& sink) = nullptr;
  std::string doc{};  // instead of the members
  // Each result has one member, which on the command line and in Python is the result itself.
  bool is_alone = false;
  // On the command line, the JSON is that of the table in the text, as it was before there were operations.
  bool has_json_of_table = false;
};

template <class Value, class Member>
ResultMember result(std::string_view name, Member Value::*member, std::string_view doc) {
  return {std::string(name), std::string(doc),
          [name = std::string(name), member](const void* value, boost::json::object& into) {
            into[name] = boost::json::value_from(static_cast<const Value*>(value)->*member);
          }};
}

// A member that a function computes; it returns a JSON value, or nullopt if the result has no such member.
template <class Value, class Function>
requires std::is_invocable_v<Function, const Value&> ResultMember result(std::string_view name, Function function,
                                                                         std::string_view doc) {
  return {std::string(name), std::string(doc),
          [name = std::string(name), function](const void* value, boost::json::object& into) {
            const std::optional<boost::json::value> member = function(*static_cast<const Value*>(value));
            if (member) into[name] = *member;
          }};
}

// "{a, b: [{c}]}"
std::string shape_of(const std::vector<ResultMember>& members);

// The objects of a list.
template <class Item>
boost::json::array objects_of(const std::vector<Item>& items, const ResultForm<Item>& form) {
  boost::json::array list;
  for (const Item& item : items) {
    boost::json::object object;
    for (const ResultMember& each : form.members) each.write(&item, object);
    list.push_back(std::move(object));
  }
  return list;
}

// A list of objects.
template <class Value, class Item>
ResultMember result(std::string_view name, std::vector<Item> Value::*member, ResultForm<Item> form,
                    std::string_view doc) {
  std::string shape = "[" + shape_of(form.members) + "]";
  ResultMember made = result<Value>(
      name,
      [member, form = std::move(form)](const Value& value) -> std::optional<boost::json::value> {
        return objects_of(value.*member, form);
      },
      doc);
  made.shape = std::move(shape);
  return made;
}

// A list of objects that only some results have.
template <class Value, class Item>
ResultMember result(std::string_view name, std::optional<std::vector<Item>> Value::*member, ResultForm<Item> form,
                    std::string_view doc) {
  std::string shape = "[" + shape_of(form.members) + "]";
  ResultMember made = result<Value>(
      name,
      [member, form = std::move(form)](const Value& value) -> std::optional<boost::json::value> {
        if (!(value.*member)) return {};
        return objects_of(*(value.*member), form);
      },
      doc);
  made.shape = std::move(shape);
  return made;
}

// A member that only some results have.
template <class Value, class Member>
ResultMember result(std::string_view name, std::optional<Member> Value::*member, std::string_view doc) {
  return result<Value>(
      name,
      [member](const Value& value) -> std::optional<boost::json::value> {
        if (!(value.*member)) return {};
        return boost::json::value_from(*(value.*member));
      },
      doc);
}

// The members of an optional part of the result; the result has them if the part exists.
template <class Value, class Part>
std::vector<ResultMember> results_within(std::optional<Part> Value::*part, std::vector<ResultMember> members,
                                         std::string_view when = {}) {
  for (ResultMember& each : members) {
    each.when = when;
    each.write = [part, write = std::move(each.write)](const void* value, boost::json::object& into) {
      if (const std::optional<Part>& there = static_cast<const Value*>(value)->*part) write(&*there, into);
    };
  }
  return members;
}

std::vector<ResultMember> operator+(std::vector<ResultMember> members, std::vector<ResultMember> more);

// ---- operations ----

// A message about what an operation does. `table`: further lines that belong to it.
struct Message {
  std::string text;
  std::string table{};
};

// Everything that a caller passes to an operation besides its request. The functions are called from one thread at a
// time; those of progress, and `interim`, may be empty.
struct Call {
  // Returns the flag of stop(). The program takes over Ctrl-C with it; without it, a signal ends the process at once.
  std::function<const std::atomic<bool>*()> ask_stop{};
  // Receives the bytes done and their total.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
  // Receives the progress of a run.
  std::function<void(const Plan& plan, const Progress& now)> run_progress{};
  // Receives the bytes done and their total of a step that has its own name.
  std::function<void(const std::string& step, std::uint64_t done, std::uint64_t total)> step_progress{};
  // Receives the path of the model on which the program of a step runs, the number of chunks that it has done, and
  // their total, 0 while it is unknown.
  std::function<void(std::string_view step, const std::string& model, std::uint64_t done, std::uint64_t total)>
      chunk_progress{};
  // Receives a result that a later one replaces, of the type of the operation's result.
  std::function<void(std::shared_ptr<const void> value)> interim{};
  std::function<void(const std::string& warning)> warn = [](const std::string&) {};
  std::function<void(const Message& note)> note = [](const Message&) {};
  bool shows_notes = false;  // false: notes that are costly to make may be omitted
  // The process carries out only this operation, with a context made for it: the operation may change the working
  // folder, its options of the context must have an effect, and other machines can start the same program.
  bool is_program = false;
  const Batch* jobs = nullptr;  // read already: replaces the options of a request that name a pipeline file

  // Returns the flag that is set to end the operation with kInterrupted; null if nobody can set it. An operation that
  // asks for the flag must look at it often.
  const std::atomic<bool>* stop() const { return ask_stop ? ask_stop() : nullptr; }
  void warn_all(const std::vector<std::string>& warnings) const {
    for (const std::string& each : warnings) warn(each);
  }
};

// The answer of an operation.
template <class Value>
struct Answer {
  Value value;
  // Set if the result is not as the user required; callers get both. If `value` shows it, as a list of findings does,
  // only the command line fails.
  std::optional<Error> failure{};
  bool value_shows_failure = false;
  bool is_partial = false;  // the failure is that of some of several outputs
  int exit_code = 0;        // of the command line, if nothing failed
};

// A table of texts; see render_table().
struct Table {
  std::vector<Column> columns;
  std::vector<Row> rows;
};

// Text that the command line prints for a result.
struct TextOutput {
  std::optional<Table> table{};  // on stdout, before `out`
  std::string out{};             // on stdout, unless JSON is asked for
  std::vector<Message> notes{};  // on stderr, unless --quiet is given
  std::string interim{};         // instead of `out` where lines stay, for a result that a later one may replace
};

// The options of the context that an operation uses, which its verb has too.
enum class ContextUse {
  kNone,
  kMaps,         // --architectures
  kTypes,        // --kernel-dir, for types that modules add
  kKernels,      // and --isa
  kCheckpoints,  // and --architectures
};

// The function of the Python module, where it differs from that of other operations.
struct InPython {
  std::string_view name{};  // empty: that of the operation
  // The type of its result and what that is, if it is not the dictionary with the members of the result. The method
  // `_NAME` of the module's class Operator makes it.
  std::string_view type{}, returns{};
};

// A verb that several operations share, in whose help its texts replace theirs. What follows it on the command line
// chooses one of them: `recipe show` or `kernels --check`.
struct SharedVerb {
  std::string_view name, summary, description, examples;  // as those of an operation
  std::string_view usage;                                 // what follows the name: "(show NAME | list)"
};

// Returns the words of all options that are words, in their order; empty if there is none for an option.
using ArrangeWords = Result<std::vector<std::string>> (*)(const std::vector<std::string>& words);

// A declaration. All texts are as in OperationSpec.
template <class Request, class Value>
struct OperationOf {
  std::string_view name;
  OperationGroup group;
  std::string_view summary;
  std::string_view description{};
  std::string_view for_command_line{}, for_programs{};
  std::string_view examples{};
  std::string_view expected_words{}, counted_word{}, usage_words{};
  bool options_first = false, words_are_numbers = false, has_headings = false, has_json_lines = false,
       prints_data = false;
  const SharedVerb* shared = nullptr;
  std::string_view choice{};
  bool is_usual_choice = false;
  bool has_verb = true;
  InPython in_python{};
  ArrangeWords arrange_words = nullptr;
  std::vector<Option<Request>> options{};
  ResultForm<Value> result{};
  ContextUse context = ContextUse::kKernels;
  std::optional<std::string_view> progress{};
  bool only_reads = false;
  Status (*check)(const Request& request) = nullptr;
  Result<Answer<Value>> (*run)(const Context& context, const Request& request, const Call& call);
  void (*print)(const Value& value, TextOutput& to);
};

// The same without its types. Immutable; can be shared between threads.
struct OperationSpec {
  std::string verb() const;     // the name on the command line
  std::string command() const;  // the verb, with what chooses the operation: "kernels --check"
  // Returns true if the operation is that of a verb without a choice.
  bool is_usual() const { return choice.empty() || is_usual_choice; }

  std::string_view name;  // "convert_lora"
  OperationGroup group{};
  std::string_view summary;      // one line, starting with a verb
  std::string_view description;  // paragraphs, separated by empty lines; empty: the summary says it all
  // Further paragraphs: of the verb's help, and for callers in C and Python.
  std::string_view for_command_line, for_programs;
  std::string_view examples;        // commands, one on each line
  std::string_view expected_words;  // "two models": for the error if there are more or fewer; empty: one word
  std::string_view counted_word;    // "model": the error says how many there are; empty: it does not
  std::string_view usage_words;     // "FILE [KEY VALUE]"; empty: the words of the options
  bool options_first = false;       // in the usage, as that of a program whose arguments the operation has
  bool words_are_numbers = false;   // a word such as -1 is not a flag
  bool has_headings = false;        // the texts of several words have their words as headings
  bool has_json_lines = false;      // JSON of several words is one object per line instead of a list
  bool prints_data = false;         // what is printed is data, such as a YAML file: there is no --json
  const SharedVerb* shared = nullptr;
  std::string_view choice{};     // with a shared verb, what chooses the operation: "show" or "--check"
  bool is_usual_choice = false;  // it is also chosen if there is nothing that chooses one
  bool has_verb = true;          // false: a flag of another verb does the same
  InPython in_python{};
  ArrangeWords arrange_words = nullptr;  // for words whose meaning depends on what they are
  std::vector<OperationOption> options{};
  std::vector<ResultMember> result{};
  std::string result_doc{};
  bool result_is_alone = false, has_json_of_table = false;
  ContextUse context{};
  // The beginning of the progress line; empty: the argument that the operation is carried out for; none: no progress.
  std::optional<std::string_view> progress{};
  bool only_reads = false;  // errors need not say that nothing was written

  std::shared_ptr<void> (*make_request)() = nullptr;
  // Checks the options of a request together. Empty if they are independent.
  std::function<Status(const void* request)> check{};
  std::function<Result<Answer<std::shared_ptr<const void>>>(const Context&, const void* request, const Call&)> run{};
  // Writes a result as a JSON object.
  std::function<void(const void* value, const TextSink& sink)> write{};
  std::function<void(const void* value, TextOutput& to)> print{};
};

// Writes the members of a result as a JSON object, or the only member that it has.
void write_alone(const std::vector<ResultMember>& members, const void* value, const TextSink& sink);
void write_members(const std::vector<ResultMember>& members, const void* value, const TextSink& sink);

template <class Request, class Value>
OperationSpec operation(OperationOf<Request, Value> from) {
  OperationSpec made{from.name,
                     from.group,
                     from.summary,
                     from.description,
                     from.for_command_line,
                     from.for_programs,
                     from.examples,
                     from.expected_words,
                     from.counted_word,
                     from.usage_words,
                     from.options_first,
                     from.words_are_numbers,
                     from.has_headings,
                     from.has_json_lines,
                     from.prints_data,
                     from.shared,
                     from.choice,
                     from.is_usual_choice,
                     from.has_verb,
                     from.in_python,
                     from.arrange_words};
  for (Option<Request>& each : from.options) made.options.push_back(std::move(each));
  made.result = std::move(from.result.members);
  made.result_doc = std::move(from.result.doc);
  made.result_is_alone = from.result.is_alone;
  made.has_json_of_table = from.result.has_json_of_table;
  made.context = from.context;
  made.progress = from.progress;
  made.only_reads = from.only_reads;
  made.make_request = []() -> std::shared_ptr<void> { return std::make_shared<Request>(); };
  if (from.check)
    made.check = [check = from.check](const void* request) { return check(*static_cast<const Request*>(request)); };
  made.run = [run = from.run](const Context& context, const void* request,
                              const Call& call) -> Result<Answer<std::shared_ptr<const void>>> {
    BOOST_OUTCOME_TRY(Answer<Value> answer, run(context, *static_cast<const Request*>(request), call));
    return Answer<std::shared_ptr<const void>>{std::make_shared<const Value>(std::move(answer.value)),
                                               std::move(answer.failure), answer.value_shows_failure, answer.is_partial,
                                               answer.exit_code};
  };
  if (from.result.write)
    made.write = [write = from.result.write](const void* value, const TextSink& sink) {
      write(*static_cast<const Value*>(value), sink);
    };
  else
    made.write = [members = made.result](const void* value, const TextSink& sink) {
      write_members(members, value, sink);
    };
  made.print = [print = from.print](const void* value, TextOutput& to) {
    print(*static_cast<const Value*>(value), to);
  };
  return made;
}

// Splits a description into its paragraphs, each on one line.
std::vector<std::string> paragraphs_of(const std::string& text);

// Error of two options that exclude each other, with the reason why.
Error cannot_be_together(std::string_view a, std::string_view b, std::string_view why = {});

}  // namespace ggufmill
