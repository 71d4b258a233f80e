#include "pipeline/cli/operation_verb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/given_options.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/run_request.h"
#include "pipeline/cli/signals.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
using OptionPlace = OperationOption::Place;

std::vector<const OperationOption*> words_of(const OperationSpec& operation) {
  std::vector<const OperationOption*> words;
  for (const OperationOption& each : operation.options)
    if (each.is_word()) words.push_back(&each);
  return words;
}

// Returns true if the operation is carried out for each of several words.
bool takes_each(const OperationSpec& operation) {
  const std::vector<const OperationOption*> words = words_of(operation);
  return !words.empty() && words.front()->place == OptionPlace::kEachWord;
}

// ---- verbs that several operations share ----

bool is_flag(std::string_view choice) { return choice.starts_with("--"); }

// "--check" or "`show`"
std::string choice_text(const OperationSpec& operation) {
  return is_flag(operation.choice) ? std::string(operation.choice) : fmt::format("`{}`", operation.choice);
}

// "`show`, `check`, and `diff`"
std::string choices_text(const OperationList& operations, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (i != 0) text += operations.size() > 2 ? ", " : " ";
    if (i != 0 && i + 1 == operations.size()) text += fmt::format("{} ", last);
    text += choice_text(*operations[i]);
  }
  return text;
}

bool has_usual(const OperationList& operations) {
  return std::ranges::any_of(operations, [](const OperationSpec* each) { return each->is_usual(); });
}

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

// Describes what --json prints.
std::string described_json(const OperationSpec& operation) {
  if (operation.has_json_of_table) return "a JSON array with one object per row of the table";
  if (operation.result_is_alone) return fmt::format("a JSON array: {}", operation.result.front().shape);
  if (operation.has_json_lines) return "one JSON object per line" + shape_of_result(operation);
  return fmt::format("one JSON object{}{}", shape_of_result(operation),
                     takes_each(operation) ? "; for several models, a list" : "");
}

// The same for all operations of a verb; those that print the same are listed together.
std::string described_json(const OperationList& operations) {
  std::vector<std::pair<std::string, OperationList>> groups;
  for (const OperationSpec* each : operations) {
    if (each->prints_data) continue;
    const std::string text = described_json(*each);
    const auto same = std::ranges::find(groups, text, &std::pair<std::string, OperationList>::first);
    if (same == groups.end())
      groups.push_back({text, {each}});
    else
      same->second.push_back(each);
  }
  std::string doc;
  for (const auto& [text, users] : groups) {
    if (!has_usual(users)) doc += fmt::format("{}with {}: ", doc.empty() ? "" : "; ", choices_text(users, "and"));
    doc += (&text == &groups.front().first ? "print " : "") + text;
  }
  return doc;
}

// An option of a verb, and the operations that have it.
struct VerbOption {
  OperationOption option;
  OperationList users;
};

// The options of one operation that are not its own, without their descriptions.
std::vector<OperationOption> shown_options(const OperationSpec& operation) {
  std::vector<OperationOption> options;
  if (!operation.prints_data) options.push_back(option("json", &Shown::json, ""));
  if (operation.progress)
    options.push_back(option("quiet", &Shown::quiet, "print neither progress nor notes").short_flag('q'));
  return options;
}

std::vector<OperationOption> all_options(const OperationSpec& operation) {
  std::vector<OperationOption> options = operation.options;
  for (const auto& more : {shown_options(operation), context_options(operation.context)})
    options.insert(options.end(), more.begin(), more.end());
  return options;
}

std::vector<OperationOption> all_options(const OperationList& operations) {
  std::vector<OperationOption> options;
  for (const OperationSpec* each : operations)
    for (OperationOption& option : all_options(*each)) options.push_back(std::move(option));
  return options;
}

void add_options(std::vector<OperationOption> options, const OperationSpec& user, std::vector<VerbOption>& to) {
  for (OperationOption& each : options) {
    if (each.is_word() || each.programs_only) continue;
    const auto same =
        std::ranges::find_if(to, [&](const VerbOption& other) { return other.option.flag() == each.flag(); });
    if (same == to.end())
      to.push_back({std::move(each), {&user}});
    else
      same->users.push_back(&user);
  }
}

// Returns the options of a verb that have flags, in the order of its help.
std::vector<VerbOption> verb_options(const OperationList& operations) {
  std::vector<VerbOption> options;
  for (const OperationSpec* each : operations) add_options(each->options, *each, options);
  for (VerbOption& each : options)
    if (!has_usual(each.users) && each.option.place != OptionPlace::kChoice)
      each.option.field.spec.doc =
          fmt::format("with {}: {}", choices_text(each.users, "and"), each.option.field.spec.doc);
  for (const OperationSpec* each : operations) add_options(shown_options(*each), *each, options);
  for (VerbOption& each : options)
    if (each.option.name() == "json") each.option.field.spec.doc = described_json(operations);
  for (const OperationSpec* each : operations) add_options(context_options(each->context), *each, options);
  return options;
}

std::string usage_of(const OperationSpec& operation) {
  if (operation.shared) return fmt::format("ggufmill {} {}", operation.verb(), operation.shared->usage);
  std::string usage = fmt::format("ggufmill {}{}", operation.verb(), operation.options_first ? " [options]" : "");
  if (!operation.usage_words.empty()) usage += fmt::format(" {}", operation.usage_words);
  for (const OperationOption* word : words_of(operation)) {
    if (!operation.usage_words.empty()) break;
    const std::string shown =
        word->shown_word + (word->place == OptionPlace::kEachWord || word->is_list() ? "..." : "");
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
  for (const OptionFlag& flag : option.flags)
    if (flag.has_value)
      add(flag.name.c_str(), po::value<Strings>()->composing(), names.in_text(flag.doc).c_str());
    else
      add(flag.name.c_str(), names.in_text(flag.doc).c_str());
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

}  // namespace

CommandSpec operation_command(const OperationList& operations) {
  const OptionNames names(Caller::kCommandLine, all_options(operations));
  const OperationSpec& first = *operations.front();
  CommandSpec spec;
  spec.usage = usage_of(first);
  spec.description = names.in_text(first.shared ? first.shared->description : first.description);
  if (!first.for_command_line.empty()) spec.description += fmt::format("\n\n{}", first.for_command_line);
  spec.examples = first.shared ? first.shared->examples : first.examples;
  spec.numbers = first.words_are_numbers;
  for (const OperationSpec* operation : operations) {
    const std::vector<const OperationOption*> words = words_of(*operation);
    const bool is_chosen_by_word = !operation->choice.empty() && !is_flag(operation->choice);
    if (is_chosen_by_word) spec.words.emplace_back(operation->choice);
    const bool needs_words =
        std::ranges::any_of(words, [](const auto* each) { return each->field.spec.required; }) &&
        std::ranges::none_of(operation->options, [](const auto& each) { return each.words_are_replaced; });
    if (!needs_words && (!is_chosen_by_word || operation->is_usual())) spec.optional = true;
    if (is_chosen_by_word || words.size() > 1) spec.positional = "words";
    if (words.empty()) continue;
    spec.many = spec.many || spec.positional == "words" || takes_each(*operation) || words.front()->is_list();
    if (spec.positional.empty()) spec.positional = lower_case(words.front()->shown_word);
    if (spec.words.empty()) spec.words = words.front()->field.spec.choices;
  }
  for (const VerbOption& each : verb_options(operations)) add_option(each.option, names, spec.options);
  for (const OperationSpec* operation : operations)
    if (const std::string flag(is_flag(operation->choice) ? operation->choice.substr(2) : "");
        !flag.empty() && !spec.options.find_nothrow(flag, false))
      spec.options.add_options()(
          flag.c_str(), lower_case(operation->summary.substr(0, 1)).append(operation->summary.substr(1)).c_str());
  return spec;
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
