#pragma once
// Parses a verb's arguments with Boost.Program_options; adds help, positional arguments and our own error messages.

#include <boost/program_options.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

using Strings = std::vector<std::string>;
using Arguments = Strings;

struct CommandSpec {
  std::string usage;        // "ggufmill plan FILE [options]"
  std::string description;  // paragraphs, separated by empty lines
  std::string examples;     // one command per line
  boost::program_options::options_description options{"options", 80};
  // The option that positional arguments are assigned to, a std::string, or a vector of them if `many` is set; empty:
  // none. It is not listed in the help; `usage` shows it.
  std::string positional;
  bool many = false;
  bool optional = false;           // the positional argument may be omitted
  bool numbers = false;            // arguments such as -1 are not options
  std::vector<std::string> words;  // possible values of the first positional argument, for completion
};

// Adds the options that all verbs have, for help, manual pages and completion.
CommandSpec full_command(CommandSpec spec);
// Returns an option as written in help texts, for example "-q, --quiet" or "--set VALUE".
std::string written_name(const boost::program_options::option_description& option);

// The parsed options, or an exit code if there is nothing more to do: help was printed, or the arguments are wrong and
// an error was printed.
struct Parsed {
  std::optional<int> exit_code;
  boost::program_options::variables_map values;
  std::vector<std::pair<std::string, std::string>> given;  // every option with a value, in the order given
};
// Parses the arguments of a verb. `spec` has the verb's own options; those of all verbs are added. Handles --help and
// --log.
Parsed parse_command(CommandSpec spec, Arguments arguments);

}  // namespace ggufmill
