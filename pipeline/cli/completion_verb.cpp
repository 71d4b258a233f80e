// `ggufmill completion`: generates shell completion from the same table as the help and the manual pages.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/verb.h"
#include "pipeline/cli/verb_options.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

using Described = boost::program_options::option_description;

struct CompletionRequest {
  std::string shell{};
};

std::vector<OperationOption> completion_options() {
  return {Option<CompletionRequest>(option("shell", &CompletionRequest::shell, "").word("SHELL"))};
}

CommandSpec completion_command() {
  CommandSpec spec;
  spec.usage = "ggufmill completion bash|zsh|fish";
  spec.description =
      "Print a script that makes the shell complete verbs, options, and files. Packages install it; without a package, "
      "add the line from the example to the shell's startup file.";
  spec.examples =
      "  source <(ggufmill completion bash)\n"
      "  source <(ggufmill completion zsh)\n"
      "  ggufmill completion fish | source";
  spec.positional = "shell";
  spec.words = {"bash", "zsh", "fish"};
  return spec;
}

bool takes_value(const Described& option) { return option.semantic()->max_tokens() > 0; }

// Quotes a text with the shell's single quotes. `outside` replaces each quote in the text.
std::string quoted(std::string_view text, std::string_view outside) {
  std::string out = "'";
  for (const char letter : text) out += letter == '\'' ? std::string(outside) : std::string(1, letter);
  return out + "'";
}

std::string bash() {
  std::vector<std::string_view> names;
  std::string cases;
  for (const Verb& verb : verbs()) {
    names.push_back(verb.name);
    const CommandSpec spec = full_command(command_of(verb));
    std::vector<std::string> options, values;
    for (const auto& option : spec.options.options()) {
      options.push_back("--" + option->long_name());
      if (takes_value(*option)) values.push_back("--" + option->long_name());
    }
    cases += fmt::format("    {})\n      options='{}'\n      values='{}'\n      words='{}' ;;\n", verb.name,
                         fmt::join(options, " "), fmt::join(values, " "), fmt::join(spec.words, " "));
  }
  return fmt::format(R"(# bash completion of ggufmill
_ggufmill() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options values words
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}    *) return ;;
  esac
  local IFS=$' \t\n'
  case " $values " in
    *" $before "*) IFS=$'\n' COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case $current in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *)
      [ "$COMP_CWORD" -eq 2 ] && COMPREPLY=($(compgen -W "$words" -- "$current"))
      [ -z "$words" ] && IFS=$'\n' COMPREPLY=($(compgen -f -- "$current")) ;;
  esac
}}
complete -o filenames -F _ggufmill ggufmill
)",
                     fmt::join(names, " "), cases);
}

// Escapes a text for the brackets and colons of _arguments.
std::string for_arguments(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '[' || letter == ']' || letter == ':' || letter == '\\') out += '\\';
    out += letter;
  }
  return out;
}

std::string zsh() {
  std::string names, cases;
  for (const Verb& verb : verbs()) {
    names += fmt::format("    {}\n", quoted(fmt::format("{}:{}", verb.name, for_arguments(verb.summary)), "'\\''"));
    const CommandSpec spec = full_command(command_of(verb));
    cases += fmt::format("    {})\n      _arguments", verb.name);
    for (const auto& option : spec.options.options())
      cases += " \\\n        " +
               quoted(fmt::format("--{}{}[{}]{}", option->long_name(), takes_value(*option) ? "=" : "",
                                  for_arguments(option->description()), takes_value(*option) ? ":value:_files" : ""),
                      "'\\''");
    if (spec.words.empty())
      cases += " \\\n        '*:file:_files' ;;\n";
    else
      cases += fmt::format(" \\\n        '1:word:({})' '*:file:_files' ;;\n", fmt::join(spec.words, " "));
  }
  return fmt::format(R"(#compdef ggufmill
_ggufmill() {{
  local -a verbs=(
{}  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
{}  esac
}}
if [ "$funcstack[1]" = _ggufmill ]; then
  _ggufmill "$@"
else
  compdef _ggufmill ggufmill
fi
)",
                     names, cases);
}

std::string fish() {
  std::string out = "# fish completion of ggufmill\n";
  for (const Verb& verb : verbs()) {
    out += fmt::format("complete -c ggufmill -n __fish_use_subcommand -f -a {} -d {}\n", verb.name,
                       quoted(verb.summary, "\\'"));
    const CommandSpec spec = full_command(command_of(verb));
    const std::string here = fmt::format("complete -c ggufmill -n '__fish_seen_subcommand_from {}'", verb.name);
    if (!spec.words.empty()) out += fmt::format("{} -f -a '{}'\n", here, fmt::join(spec.words, " "));
    for (const auto& option : spec.options.options())
      out += fmt::format("{} -l {}{} -d {}\n", here, option->long_name(), takes_value(*option) ? " -r" : "",
                         quoted(option->description(), "\\'"));
  }
  return out;
}

int completion_verb(const Parsed& parsed) {
  CompletionRequest request;
  if (const Status read = read_options(completion_command(), completion_options(), parsed, &request); !read)
    return fail(read.error());
  const std::string& shell = request.shell;
  std::string script;
  if (shell == "bash") script = bash();
  if (shell == "zsh") script = zsh();
  if (shell == "fish") script = fish();
  if (script.empty())
    return fail(usage_error(fmt::format("unknown shell {}", quoted_name(shell)),
                            "the supported shells are bash, zsh, and fish"));
  std::fputs(script.c_str(), stdout);
  return 0;
}

}  // namespace

const Verb kCompletionVerb{"completion", OperationGroup::kReference, "Print a completion script for a shell",
                           completion_command, completion_verb};

}  // namespace ggufmill
