#include "pipeline/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <sstream>

#include "pipeline/api/operations/operation.h"
#include "pipeline/cli/messages.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kWidth = 80;

// Wraps a paragraph into lines of at most kWidth bytes; longer words are not split.
std::string wrapped(const std::string& paragraph) {
  std::string out;
  std::size_t length = 0;
  std::istringstream words(paragraph);
  words.exceptions(std::ios::badbit);  // lets std::bad_alloc through
  for (std::string word; words >> word;) {
    const bool fits = length + 1 + word.size() <= kWidth;
    if (length != 0) out += fits ? ' ' : '\n';
    length = (length != 0 && fits ? length + 1 : 0) + word.size();
    out += word;
  }
  return out;
}

std::string help_text(const CommandSpec& spec) {
  std::ostringstream options;
  options.exceptions(std::ios::badbit);  // lets std::bad_alloc through
  options << spec.options;
  std::string text = wrapped("usage: " + spec.usage) + "\n\n";
  for (const std::string& paragraph : paragraphs_of(spec.description)) text += wrapped(paragraph) + "\n\n";
  return text + fmt::format("{}\nexample:\n{}\n", options.str(), spec.examples);
}

Parsed usage_failure(const CommandSpec& spec, const std::string& what) {
  return {fail(usage_error(what, fmt::format("usage: {}; see `--help`", spec.usage))), {}, {}};
}

// The options that all verbs have.
struct CommonOptions {
  std::string log;
  bool help = false;
};

// Adds them, and where parsing stores their values, which must then exist.
void add_common(CommonOptions& into, po::options_description& to) {
  to.add_options()("log", po::value(&into.log)->default_value("text"),
                   "format of messages on stderr: text, or json (one object per line)")(
      "help,h", po::bool_switch(&into.help), "print this help");
}

constexpr int kStyle = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;

// Returns the options listed in the help, and the positional one.
po::options_description all_options(const CommandSpec& spec) {
  po::options_description all;
  all.add(spec.options);
  if (spec.positional.empty()) return all;
  if (spec.many)
    all.add_options()(spec.positional.c_str(), po::value<Arguments>()->composing());
  else
    all.add_options()(spec.positional.c_str(), po::value<std::string>());
  return all;
}

// Refuses an option as the value of the option before it, whose own value was forgotten. A value that is given as
// --option=VALUE may look like an option.
Status check_values(const po::parsed_options& parsed) {
  for (const po::option& option : parsed.options) {
    if (option.string_key.empty() || option.original_tokens.size() < 2 || option.value.empty()) continue;
    const std::string& value = option.value.front();
    const bool looks_like_option =
        value.size() > 1 && value[0] == '-' && !std::isdigit(static_cast<unsigned char>(value[1]));
    if (looks_like_option)
      return usage_error(
          fmt::format("--{} needs a value, but {} looks like an option", option.string_key, quoted_name(value)),
          fmt::format("give the value before it; if it is the value: --{}={}", option.string_key, shell_word(value)));
  }
  return ok();
}

Parsed parse(const CommandSpec& spec, const po::options_description& all, const Arguments& arguments) {
  po::positional_options_description positional;
  if (!spec.positional.empty()) positional.add(spec.positional.c_str(), spec.many ? -1 : 1);
  Parsed parsed;
  const po::parsed_options options =
      po::command_line_parser(arguments).options(all).positional(positional).style(kStyle).run();
  for (const po::option& option : options.options)
    for (const std::string& value : option.value) parsed.given.emplace_back(option.string_key, value);
  if (const Status values = check_values(options); !values) return {fail(values.error()), {}, {}};
  po::store(options, parsed.values);
  po::notify(parsed.values);
  return parsed;
}

// Returns the first positional argument beyond the accepted ones.
std::string extra_word(const CommandSpec& spec, const po::options_description& all, const Arguments& arguments) {
  std::size_t taken = spec.positional.empty() ? 0 : 1;
  for (const po::option& option : po::command_line_parser(arguments).options(all).style(kStyle).run().options)
    if (option.string_key.empty() && taken-- == 0) return option.value.front();
  return {};
}

std::string unknown_option(const po::unknown_option& error, const po::options_description& all) {
  std::vector<std::string> names;
  for (const auto& option : all.options()) names.push_back("--" + option->long_name());
  const std::string name = error.get_option_name();
  const std::string meant = did_you_mean(name, names);
  return fmt::format("unknown option '{}'{}", name, meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

// Makes the parser accept words such as -1 as values rather than options, by prefixing a space; the number stays the
// same.
Arguments with_numbers(Arguments arguments) {
  for (std::string& word : arguments)
    if (word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1]))) word.insert(0, " ");
  return arguments;
}

// Returns true if the arguments request JSON messages. Works on unparsed arguments, which may be wrong.
bool asks_for_json(const Arguments& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i] == "--log=json" ||
        (arguments[i] == "--log" && i + 1 < arguments.size() && arguments[i + 1] == "json"))
      return true;
  return false;
}

}  // namespace

CommandSpec full_command(CommandSpec spec) {
  CommonOptions unused;
  add_common(unused, spec.options);
  return spec;
}

std::string written_name(const po::option_description& option) {
  const std::string value = option.semantic()->max_tokens() > 0 ? " VALUE" : "";
  const std::string letter = option.canonical_display_name(po::command_line_style::allow_dash_for_short);
  const std::string name = "--" + option.long_name();
  return (letter.starts_with('-') && !letter.starts_with("--") ? letter + ", " : "") + name + value;
}

Parsed parse_command(CommandSpec spec, Arguments arguments) {
  CommonOptions common;
  add_common(common, spec.options);
  if (spec.numbers) arguments = with_numbers(std::move(arguments));
  const po::options_description all = all_options(spec);
  if (asks_for_json(arguments)) set_log_format(LogFormat::kJson);
  try {
    Parsed parsed = parse(spec, all, arguments);
    if (parsed.exit_code) return parsed;
    if (common.help) {
      std::fputs(help_text(spec).c_str(), stdout);
      return {0, {}, {}};
    }
    if (common.log != "text" && common.log != "json")
      return usage_failure(spec, fmt::format("--log must be 'text' or 'json', not '{}'", common.log));
    if (!spec.positional.empty() && !spec.optional && !parsed.values.count(spec.positional))
      return usage_failure(
          spec, spec.positional == "words" ? "arguments are missing" : fmt::format("no {} given", spec.positional));
    return parsed;
  } catch (const po::unknown_option& error) {
    return usage_failure(spec, unknown_option(error, all));
  } catch (const po::too_many_positional_options_error&) {
    // The value of an option may have been taken for an option before it.
    const po::parsed_options options = po::command_line_parser(arguments).options(all).style(kStyle).run();
    if (const Status values = check_values(options); !values) return {fail(values.error()), {}, {}};
    return usage_failure(spec, fmt::format("unexpected argument '{}'", extra_word(spec, all, arguments)));
  } catch (const po::error& error) {
    return usage_failure(spec, error.what());
  }
}

}  // namespace ggufmill
