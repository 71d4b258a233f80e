#include "pipeline/cli/operation_verb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/given_options.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/signals.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/terminal.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
using OptionPlace = OperationOption::Place;

// The options that decide what is printed.
struct Shown {
  bool json = false, quiet = false;
};

// "{files, bytes}; with @spec {file, findings: [{level}]}"
std::string shape_of_result(const OperationSpec& operation) {
  if (!operation.result_doc.empty()) return ": " + operation.result_doc;
  std::string text;
  for (std::size_t i = 0; i < operation.result.size();) {
    const std::string& when = operation.result[i].when;
    std::vector<ResultMember> members;
    for (; i < operation.result.size() && operation.result[i].when == when; ++i) members.push_back(operation.result[i]);
    text += when.empty() ? ": " + shape_of(members) : "; " + when + " " + shape_of(members);
  }
  return text;
}

std::vector<OperationOption> shown_options(const OperationSpec& operation) {
  const bool has_several =
      std::ranges::any_of(operation.options, [](const auto& each) { return each.place == OptionPlace::kEachWord; });
  std::vector<OperationOption> options{option("json", &Shown::json,
                                              fmt::format("print one JSON object{}{}", shape_of_result(operation),
                                                          has_several ? "; for several models, a list" : ""))};
  if (operation.progress)
    options.push_back(option("quiet", &Shown::quiet, "print neither progress nor notes").short_flag('q'));
  return options;
}

// All options of a verb.
struct VerbOptions {
  explicit VerbOptions(const OperationSpec& from)
      : operation(from), shown(shown_options(from)), context(context_options(from.context)) {}

  std::vector<OperationOption> all() const {
    std::vector<OperationOption> options = operation.options;
    options.insert(options.end(), shown.begin(), shown.end());
    options.insert(options.end(), context.begin(), context.end());
    return options;
  }

  const OperationSpec& operation;
  const std::vector<OperationOption> shown, context;
};

std::vector<const OperationOption*> words_of(const OperationSpec& operation) {
  std::vector<const OperationOption*> words;
  for (const OperationOption& each : operation.options)
    if (each.is_word()) words.push_back(&each);
  return words;
}

std::string usage_of(const OperationSpec& operation) {
  std::string usage = fmt::format("ggufmill {}{}", operation.verb(), operation.options_first ? " [options]" : "");
  if (!operation.usage_words.empty()) usage += fmt::format(" {}", operation.usage_words);
  for (const OperationOption* word : words_of(operation)) {
    if (!operation.usage_words.empty()) break;
    const std::string shown = word->shown_word + (word->place == OptionPlace::kEachWord ? "..." : "");
    usage += word->field.spec.required ? " " + shown : " [" + shown + "]";
  }
  return operation.options_first ? usage : usage + " [options]";
}

const po::value_semantic* value_of(const OperationOption& option) {
  const FieldSpec& spec = option.field.spec;
  if (spec.kind == FieldKind::kBool) return new po::untyped_value(true);
  if (option.is_list()) return po::value<Strings>()->composing();
  auto* const value = po::value<std::string>();
  return spec.default_text.empty() ? value : value->default_value(spec.default_text);
}

void add_option(const OperationOption& option, const OptionNames& names, po::options_description& to) {
  auto add = to.add_options();
  for (const OptionFlag& flag : option.flags) add(flag.name.c_str(), names.in_text(flag.doc).c_str());
  if (!option.flags.empty() || option.is_word()) return;
  const std::string name = option.flag() + (option.letter == '\0' ? "" : fmt::format(",{}", option.letter));
  add(name.c_str(), value_of(option), names.in_text(option.field.spec.doc).c_str());
}

// The words of a command line without their flags.
Strings positional_words(const CommandSpec& spec, const po::variables_map& values) {
  if (spec.positional.empty() || !values.count(spec.positional)) return {};
  const po::variable_value& value = values[spec.positional];
  return spec.many ? value.as<Strings>() : Strings{value.as<std::string>()};
}

// Adds the values of options that have a flag.
void add_given(const std::vector<OperationOption>& options, const po::variables_map& values, GivenOptions& given) {
  for (const OperationOption& option : options) {
    for (const OptionFlag& flag : option.flags)
      if (values.count(flag.name)) given.add_flag(option, flag);
    const std::string name = option.flag();
    if (option.is_word() || !option.flags.empty() || !values.count(name) || values[name].defaulted()) continue;
    if (option.field.spec.kind == FieldKind::kBool)
      given.add_flag(option, {name, "true", ""});
    else if (option.is_list())
      for (const std::string& word : values[name].as<Strings>()) given.add_word(option, word);
    else
      given.add_word(option, values[name].as<std::string>());
  }
}

Status check_words(const OperationSpec& operation, const Strings& words, const po::variables_map& values) {
  const std::vector<const OperationOption*> expected = words_of(operation);
  const bool takes_each = !expected.empty() && expected.front()->place == OptionPlace::kEachWord;
  if (takes_each && words.size() > 1) {
    for (const OperationOption& option : operation.options)
      if (!option.if_several.empty() && values.count(option.flag()))
        return usage_error(fmt::format("{} is not supported with several files", option_reference(option.name())),
                           option.if_several);
    return ok();
  }
  for (const OperationOption& option : operation.options)
    if (option.words_are_replaced && values.count(option.flag())) return ok();
  const auto required = std::ranges::count_if(expected, [](const auto* each) { return each->field.spec.required; });
  // Optional words come together.
  if (words.size() == static_cast<std::size_t>(required) || words.size() == expected.size()) return ok();
  if (expected.size() == 1)
    return usage_error(fmt::format("no {} given", lower_case(expected.front()->shown_word)),
                       fmt::format("usage: {}; see `--help`", usage_of(operation)));
  std::string what = fmt::format("expected {}", operation.expected_words);
  if (!operation.counted_word.empty()) what += fmt::format(", got {}", counted(words.size(), operation.counted_word));
  return usage_error(std::move(what), "usage: " + usage_of(operation));
}

// Returns a word as it was given: without the space that keeps the parser from taking -1 for a flag.
std::string given_word(const OperationSpec& operation, const std::string& word) {
  return operation.words_are_numbers && word.starts_with(" -") ? word.substr(1) : word;
}

// One request and what the line of progress calls it.
struct Request {
  std::string name;
  std::shared_ptr<const void> value;
};

// Reads the request of every word, or the only one.
Result<std::vector<Request>> read_requests(const OperationSpec& operation, const GivenOptions& named,
                                           const Strings& words, const Types& types) {
  const std::vector<const OperationOption*> expected = words_of(operation);
  const bool takes_each = !expected.empty() && expected.front()->place == OptionPlace::kEachWord;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < (takes_each ? words.size() : 1); ++i) {
    GivenOptions given = named.copy();
    if (takes_each)
      given.add_word(*expected.front(), words[i]);
    else
      for (std::size_t word = 0; word < words.size(); ++word)
        given.add_word(*expected[word], given_word(operation, words[word]));
    BOOST_OUTCOME_TRY(auto read, read_request(operation, given, types));
    requests.push_back({takes_each ? words[i] : "", std::move(read)});
  }
  return requests;
}

// Shows progress: of the operation or its runs, and of steps, whose time begins with them.
class Progresses {
 public:
  Progresses(bool quiet, std::string title) : quiet_(quiet), title_(std::move(title)) {}

  void give_to(Call& call) {
    call.progress = [this](std::uint64_t done, std::uint64_t total) { main().show(title_, done, total); };
    call.run_progress = [this](const Plan& plan, const Progress& now) { main().show(plan, now); };
    call.step_progress = [this](const std::string& step, std::uint64_t done, std::uint64_t total) {
      of_step(step).show(step, done, total);
    };
    call.chunk_progress = [this](std::string_view step, const std::string& model, std::uint64_t done,
                                 std::uint64_t total) {
      of_step(fmt::format("{} {}", step, model)).show_chunks(step, model, done, total);
    };
  }

  // Ends the lines on a terminal, so that others can follow them.
  void finish() {
    for (std::optional<ProgressMeter>* const meter : {&main_, &step_})
      if (*meter) (*meter)->finish();
  }

 private:
  ProgressMeter& main() { return main_ ? *main_ : main_.emplace(quiet_); }
  ProgressMeter& of_step(const std::string& step) {
    if (step_ && step == step_name_) return *step_;
    step_name_ = step;
    return step_.emplace(quiet_);
  }

  const bool quiet_;
  const std::string title_;
  std::string step_name_;
  std::optional<ProgressMeter> main_, step_;
};

// Prints results that replace each other: in place on a terminal; elsewhere each that differs from the one before.
class ResultScreen {
 public:
  void show(const TextOutput& text, bool is_last) {
    const std::string& now = is_last || terminal_ || text.interim.empty() ? text.out : text.interim;
    if (now == last_) return;
    if (terminal_ && lines_ != 0) fmt::print("\x1b[{}F\x1b[J", lines_);
    std::fwrite(now.data(), 1, now.size(), stdout);
    lines_ = std::count(now.begin(), now.end(), '\n');
    last_ = now;
  }

 private:
  const bool terminal_ = is_terminal(StandardStream::kOut);
  std::ptrdiff_t lines_ = 0;
  std::string last_;
};

// Prints the errors of a failure, and returns the exit code of the first.
int print_failure(const Error& failure, bool is_partial) {
  if (!is_partial) return fail(failure);
  Diagnostics errors;
  errors.add(failure);
  for (const Error& error : errors.errors()) print_error(error);
  return static_cast<int>(failure.code);
}

// Carries out one request and prints what it found.
int run_request(const OperationSpec& operation, const Context& context, const Request& request, const Shown& shown,
                const OptionNames& names, JsonList* list) {
  const std::string title(operation.progress.value_or("").empty() ? request.name : *operation.progress);
  Progresses progress(shown.quiet, title);
  ResultScreen screen;
  const auto print = [&](const std::shared_ptr<const void>& value, bool is_last) {
    TextOutput text;
    operation.print(value.get(), text);
    if (list) {
      list->begin_item();
      operation.write(value.get(), [](std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), stdout); });
    } else {
      screen.show(text, is_last);
    }
    std::fflush(stdout);
    return text;
  };
  Call call{.stop = catch_signals(),
            .warn =
                [&](const std::string& warning) {
                  progress.finish();
                  print_warning(names.in_message(warning));
                },
            .shows_notes = !shown.quiet,
            .is_program = true};
  if (operation.progress) progress.give_to(call);
  if (!shown.quiet)
    call.note = [&](const Message& note) {
      progress.finish();
      print_note(names.in_message(note.text), note.table);
    };
  call.interim = [&](const std::shared_ptr<const void>& value) { print(value, false); };
  const auto answer = operation.run(context, request.value.get(), call);
  progress.finish();
  if (!answer) {
    const int code = fail(names.in_error(answer.error()));
    return signal_exit_code().value_or(code);
  }
  const TextOutput text = print(answer.value().value, true);
  int code = answer.value().exit_code;
  if (answer.value().failure) {
    code = print_failure(names.in_error(*answer.value().failure), answer.value().is_partial);
    code = signal_exit_code().value_or(code);
    if (!answer.value().is_partial) return code;
  }
  for (const Message& note : text.notes) call.note(note);
  return code;
}

}  // namespace

CommandSpec operation_command(const OperationSpec& operation) {
  const VerbOptions options(operation);
  const OptionNames names(Caller::kCommandLine, options.all());
  const std::vector<const OperationOption*> words = words_of(operation);
  CommandSpec spec;
  spec.usage = usage_of(operation);
  spec.description = names.in_text(operation.description);
  if (!operation.for_command_line.empty()) spec.description += fmt::format("\n\n{}", operation.for_command_line);
  spec.examples = operation.examples;
  spec.numbers = operation.words_are_numbers;
  if (!words.empty()) {
    const bool takes_each = words.front()->place == OptionPlace::kEachWord;
    spec.many = takes_each || words.size() > 1;
    spec.positional = words.size() > 1 ? "words" : lower_case(words.front()->shown_word);
    spec.optional = !words.front()->field.spec.required ||
                    std::ranges::any_of(operation.options, [](const auto& each) { return each.words_are_replaced; });
    spec.words = words.front()->field.spec.choices;
  }
  for (const OperationOption& option : options.all()) add_option(option, names, spec.options);
  return spec;
}

int run_operation(const OperationSpec& operation, const Parsed& parsed) {
  const VerbOptions options(operation);
  const OptionNames names(Caller::kCommandLine, options.all());
  const Strings words = positional_words(operation_command(operation), parsed.values);
  if (const Status usable = check_words(operation, words, parsed.values); !usable)
    return fail(names.in_error(usable.error()));
  GivenOptions given(names);
  for (const auto* const part : {&options.operation.options, &options.shown, &options.context})
    add_given(*part, parsed.values, given);
  Shown shown;
  ContextRequest wanted;
  if (const Status read = given.read(options.shown, {}, &shown); !read) return fail(read.error());
  if (const Status read = given.read(options.context, {}, &wanted); !read) return fail(read.error());
  const auto context = create_context(wanted);
  if (!context) return fail(names.in_error(context.error()));
  print_warnings(context.value().kernels().warnings());
  const auto requests = read_requests(operation, given, words, context.value().kernels().types());
  if (!requests) return fail(requests.error());
  std::optional<JsonList> list;
  if (shown.json) list.emplace(requests.value().size());
  int code = 0;
  for (const Request& request : requests.value()) {
    const int one = run_request(operation, context.value(), request, shown, names, list ? &*list : nullptr);
    if (code == 0) code = one;
    if (signal_exit_code()) break;
  }
  return code;
}

}  // namespace ggufmill
