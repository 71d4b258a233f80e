#include "pipeline/cli/verb_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/option_names.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
using OptionPlace = OperationOption::Place;

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

}  // namespace

std::vector<const OperationOption*> words_of(const OperationSpec& operation) {
  std::vector<const OperationOption*> words;
  for (const OperationOption& each : operation.options)
    if (each.is_word()) words.push_back(&each);
  return words;
}

bool takes_each(const OperationSpec& operation) {
  const std::vector<const OperationOption*> words = words_of(operation);
  return !words.empty() && words.front()->place == OptionPlace::kEachWord;
}

bool is_flag(std::string_view choice) { return choice.starts_with("--"); }

std::string choice_text(const OperationSpec& operation) {
  return is_flag(operation.choice) ? std::string(operation.choice) : fmt::format("`{}`", operation.choice);
}

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

void add_options(const std::vector<OperationOption>& options, CommandSpec& spec) {
  const OptionNames names(Caller::kCommandLine, options);
  for (const OperationOption& each : options)
    if (!each.is_word()) add_option(each, names, spec.options);
}

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

}  // namespace ggufmill
