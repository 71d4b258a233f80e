// Runs a verb that is made from operations: chooses one, reads its requests, carries each out with its progress, and
// prints what it found.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/given_options.h"
#include "pipeline/api/operations/option_names.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/verb_options.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/platform/terminal.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
using OptionPlace = OperationOption::Place;

// A request, and what the line of progress calls it.
struct OperationRequest {
  std::string name;
  std::shared_ptr<const void> value;
};

// ---- arguments ----

// The words of a command line without their flags.
Strings positional_words(const CommandSpec& spec, const po::variables_map& values) {
  if (spec.positional.empty() || !values.count(spec.positional)) return {};
  const po::variable_value& value = values[spec.positional];
  return spec.many ? value.as<Strings>() : Strings{value.as<std::string>()};
}

// Adds the values of options that have a flag.
void add_given(const std::vector<OperationOption>& options, const po::variables_map& values, GivenOptions& given) {
  for (const OperationOption& option : options) {
    if (option.programs_only) continue;
    for (const OptionFlag& flag : option.flags)
      if (!flag.has_value && values.count(flag.name)) given.add_flag(option, flag);
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

// Adds the values of flags that have one and share an option, in the order given.
void add_flag_values(const OperationSpec& operation, const Parsed& parsed, GivenOptions& given) {
  for (const auto& [name, value] : parsed.given)
    for (const OperationOption& option : operation.options)
      for (const OptionFlag& flag : option.flags)
        if (flag.has_value && flag.name == name) given.add_flag_value(option, flag, value);
}

bool is_given(const OperationOption& option, const po::variables_map& values) {
  for (const OptionFlag& flag : option.flags)
    if (values.count(flag.name)) return true;
  return values.count(option.flag()) && !values[option.flag()].defaulted();
}

// `given` are the words as they were given, with the one that chooses the operation.
Error wrong_words(const OperationSpec& operation, const Strings& given) {
  const std::vector<const OperationOption*> expected = words_of(operation);
  const std::string usage = "usage: " + usage_of(operation);
  if (expected.size() == 1 && given.empty())
    return usage_error(fmt::format("no {} given", lower_case(expected.front()->shown_word)), usage + "; see `--help`");
  if (operation.shared)
    return usage_error(fmt::format("invalid arguments: '{}'", printable(fmt::format("{}", fmt::join(given, " ")))),
                       usage);
  std::string what = fmt::format("expected {}", operation.expected_words);
  if (!operation.counted_word.empty()) what += fmt::format(", got {}", counted(given.size(), operation.counted_word));
  return usage_error(std::move(what), usage);
}

Status check_words(const OperationSpec& operation, const Strings& words, const Strings& given,
                   const po::variables_map& values) {
  if (takes_each(operation) && words.size() > 1) {
    for (const OperationOption& option : operation.options)
      if (!option.if_several.empty() && values.count(option.flag()))
        return usage_error(fmt::format("{} is not supported with several files", option_reference(option.name())),
                           option.if_several);
    return ok();
  }
  for (const OperationOption& option : operation.options)
    if (option.words_are_replaced && values.count(option.flag())) return ok();
  const std::vector<const OperationOption*> expected = words_of(operation);
  const auto required = static_cast<std::size_t>(
      std::ranges::count_if(expected, [](const auto* each) { return each->field.spec.required; }));
  // Optional words come together.
  if (words.size() == required || words.size() == expected.size()) return ok();
  if (!expected.empty() && expected.back()->is_list() && words.size() > required) return ok();
  return wrong_words(operation, given);
}

// Returns the operation that a command line chooses, and removes the word that does.
Result<const OperationSpec*> choose(const OperationList& operations, const po::variables_map& values, Strings& words) {
  const OperationSpec *by_flag = nullptr, *by_word = nullptr, *usual = nullptr;
  for (const OperationSpec* each : operations) {
    if (is_flag(each->choice) && values.count(std::string(each->choice.substr(2)))) by_flag = each;
    if (!words.empty() && !is_flag(each->choice) && words.front() == each->choice) by_word = each;
    if (each->is_usual()) usual = each;
  }
  if (by_flag && by_word)
    return usage_error(fmt::format("{} and {} cannot be used together", choice_text(*by_word), choice_text(*by_flag)),
                       "omit one of them");
  if (by_word) words.erase(words.begin());
  if (const OperationSpec* const chosen = by_flag ? by_flag : by_word ? by_word : usual) return chosen;
  return usage_error(fmt::format("invalid arguments: '{}'", printable(fmt::format("{}", fmt::join(words, " ")))),
                     "usage: " + usage_of(*operations.front()));
}

// Says how to choose an operation: "name the module: --check MODULE".
std::string how_to_choose(const OperationSpec& operation) {
  if (!is_flag(operation.choice)) {
    std::string words = operation.command();
    for (const OperationOption* word : words_of(operation)) words += " " + word->shown_word;
    return fmt::format("run `ggufmill {}`", words);
  }
  for (const OperationOption& option : operation.options)
    if (option.place == OptionPlace::kChoice)
      return fmt::format("name the {}: {} {}", lower_case(option.shown_word), operation.choice, option.shown_word);
  return fmt::format("give {}", operation.choice);
}

// Refuses options of other operations of the verb.
Status check_options(const OperationList& operations, const OperationSpec& chosen, const po::variables_map& values) {
  for (const VerbOption& each : verb_options(operations)) {
    if (std::ranges::count(each.users, &chosen) != 0 || !is_given(each.option, values)) continue;
    const std::string flag = "--" + each.option.flag();
    const bool is_of_one = each.users.size() == 1 && !has_usual(each.users);
    if (is_of_one || (chosen.is_usual() && !has_usual(each.users)))
      return usage_error(fmt::format("{} needs {}", flag, choices_text(each.users, "or")),
                         how_to_choose(*each.users.front()));
    return usage_error(fmt::format("{} has no effect with {}", flag, choice_text(chosen)), "omit it");
  }
  return ok();
}

// Returns a word as it was given: without the space that keeps the parser from taking -1 for a flag.
std::string given_word(const OperationSpec& operation, const std::string& word) {
  return operation.words_are_numbers && word.starts_with(" -") ? word.substr(1) : word;
}

// Adds the words of one request; the last option takes all that remain if it is a list.
void add_words(const OperationSpec& operation, const Strings& words, GivenOptions& given) {
  const std::vector<const OperationOption*> expected = words_of(operation);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (!operation.arrange_words || !words[i].empty())
      given.add_word(*expected[std::min(i, expected.size() - 1)], given_word(operation, words[i]));
}

// Reads the request of every word, or the only one.
Result<std::vector<OperationRequest>> read_requests(const OperationSpec& operation, const GivenOptions& named,
                                                    const Strings& words, const Types& types) {
  const bool is_for_each = takes_each(operation);
  std::vector<OperationRequest> requests;
  for (std::size_t i = 0; i < (is_for_each ? words.size() : 1); ++i) {
    GivenOptions given = named.copy();
    add_words(operation, is_for_each ? Strings{words[i]} : words, given);
    BOOST_OUTCOME_TRY(auto read, read_request(operation, given, types));
    requests.push_back({is_for_each ? words[i] : "", std::move(read)});
  }
  return requests;
}

// ---- signals ----

std::atomic<bool> stop_requested{false};
std::atomic<int> last_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  last_signal = number;
  stop_requested = true;
}

// Handles Ctrl-C (SIGINT) and SIGTERM: a flag is set, the engine stops, and temporary files are removed unless a later
// run can resume from them. Returns the flag. A second signal of the same kind kills the process immediately.
const std::atomic<bool>* catch_signals() {
  on_interrupt(on_signal);
  return &stop_requested;
}

// Returns 130 after SIGINT, 143 after SIGTERM, and nullopt if no signal arrived.
std::optional<int> signal_exit_code() {
  if (last_signal == SIGINT) return static_cast<int>(ExitCode::kInterrupted);
  if (last_signal == SIGTERM) return static_cast<int>(ExitCode::kTerminated);
  return {};
}

// ---- one request ----

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
  void show(const TextOutput& text) {
    std::string now = text.table ? render_table(text.table->columns, text.table->rows) : "";
    now += terminal_ || text.interim.empty() ? text.out : text.interim;
    if (now == last_) return;
    if (terminal_ && lines_ != 0) fmt::print("\x1b[{}F\x1b[J", lines_);
    std::fwrite(now.data(), 1, now.size(), stdout);
    lines_ = std::count(now.begin(), now.end(), '\n');
    last_ = std::move(now);
  }

 private:
  const bool terminal_ = is_terminal(StandardStream::kOut);
  std::ptrdiff_t lines_ = 0;
  std::string last_;
};

// Returns the exit code of a failure: that of the signal that ended the operation, unless it says that trying again may
// help.
int after_signal(int code) {
  return code == static_cast<int>(ExitCode::kTransient) ? code : signal_exit_code().value_or(code);
}

// Prints the errors of a failure, and that nothing was written if the operation otherwise `writes`; returns the exit
// code of the first.
int print_failure(const Error& failure, bool writes) {
  if (writes) return fail(failure);
  Diagnostics errors;
  errors.add(failure);
  for (const Error& error : errors.errors()) print_error(error);
  return static_cast<int>(failure.code);
}

void print_json(const OperationSpec& operation, const void* value, const TextOutput& text, bool is_last,
                JsonList& list) {
  if (operation.has_json_of_table && (text.table || !operation.result_is_alone))
    return list.add(text.table ? table_json(text.table->columns, text.table->rows) : "[]");
  if (is_last) list.begin_item();
  const TextSink sink = [](std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), stdout); };
  if (operation.result_is_alone)
    write_alone(operation.result, value, sink);
  else
    operation.write(value, sink);
  if (!is_last) sink("\n");
}

// Returns the exit code. `list` is null unless JSON is to be printed.
int run_request(const OperationSpec& operation, const Context& context, const OperationRequest& request,
                const Shown& shown, const OptionNames& names, bool has_heading, JsonList* list) {
  const std::string title(operation.progress.value_or("").empty() ? request.name : *operation.progress);
  Progresses progress(shown.quiet, title);
  ResultScreen screen;
  const auto print = [&](const std::shared_ptr<const void>& value, bool is_last) {
    TextOutput text;
    operation.print(value.get(), text);
    if (list)
      print_json(operation, value.get(), text, is_last, *list);
    else
      screen.show(text);
    std::fflush(stdout);
    return text;
  };
  Call call{.ask_stop = catch_signals,
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
  if (!answer) return after_signal(print_failure(names.in_error(answer.error()), !operation.only_reads));
  if (has_heading && !list) fmt::print("{}\n", printable(request.name));
  const TextOutput text = print(answer.value().value, true);
  int code = answer.value().exit_code;
  if (const auto& failure = answer.value().failure) {
    code = print_failure(names.in_error(*failure), !answer.value().is_partial && !operation.only_reads);
    code = after_signal(code);
    if (!answer.value().is_partial) return code;
  }
  for (const Message& note : text.notes) call.note(note);
  return code;
}

}  // namespace

Status read_options(const CommandSpec& spec, const std::vector<OperationOption>& options, const Parsed& parsed,
                    void* into) {
  GivenOptions given(OptionNames(Caller::kCommandLine, options));
  add_given(options, parsed.values, given);
  const Strings words = positional_words(spec, parsed.values);
  for (const OperationOption& each : options)
    if (each.is_word() && !words.empty()) given.add_word(each, words.front());
  return given.read(options, {}, into);
}

int run_operation(const OperationList& operations, const Parsed& parsed) {
  const Strings given_words = positional_words(operation_command(operations), parsed.values);
  Strings words = given_words;
  const auto chosen = choose(operations, parsed.values, words);
  if (!chosen) return fail(chosen.error());
  const OperationSpec& operation = *chosen.value();
  const OptionNames names(Caller::kCommandLine, all_options(operation));
  Status usable = ok();
  if (operation.arrange_words) {
    for (std::string& word : words) word = given_word(operation, word);
    auto arranged = operation.arrange_words(words);
    if (!arranged) return fail(names.in_error(arranged.error()));
    words = std::move(arranged).value();
  } else {
    usable = check_words(operation, words, given_words, parsed.values);
  }
  if (usable) usable = check_options(operations, operation, parsed.values);
  if (!usable) return fail(names.in_error(usable.error()));
  const std::vector<OperationOption> of_printing = shown_options(operation),
                                     of_context = context_options(operation.context);
  GivenOptions given(names);
  for (const auto* const part : {&operation.options, &of_printing, &of_context}) add_given(*part, parsed.values, given);
  add_flag_values(operation, parsed, given);
  Shown shown;
  ContextRequest wanted;
  if (const Status read = given.read(of_printing, {}, &shown); !read) return fail(read.error());
  if (const Status read = given.read(of_context, {}, &wanted); !read) return fail(read.error());
  const auto context = create_context(wanted);
  if (!context) return fail(names.in_error(context.error()));
  print_warnings(context.value().kernels().warnings());
  const auto requests = read_requests(operation, given, words, context.value().kernels().types());
  if (!requests) return fail(requests.error());
  const std::size_t count = requests.value().size();
  std::optional<JsonList> list;
  int code = 0;
  for (const OperationRequest& request : requests.value()) {
    const bool is_first = &request == &requests.value().front(), has_heading = operation.has_headings && count > 1;
    if (shown.json && (is_first || operation.has_json_lines)) list.emplace(operation.has_json_lines ? 1 : count);
    if (has_heading && !is_first && !list) std::puts("");
    const int one =
        run_request(operation, context.value(), request, shown, names, has_heading, list ? &*list : nullptr);
    if (code == 0) code = one;
    if (signal_exit_code()) break;
  }
  return code;
}

}  // namespace ggufmill
