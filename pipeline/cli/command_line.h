#pragma once
// Parsing of a verb's arguments with Boost.Program_options: help, one positional file, errors in our words.

#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

using Arguments = std::vector<std::string>;

struct CommandSpec {
  std::string usage;        // "ggufmill plan FILE [options]"
  std::string description;  // paragraphs, with an empty line between them
  std::string examples;     // one command a line
  boost::program_options::options_description options{"options", 80};
  // The option that an argument without a name stands for, of a std::string; with `many`, of a vector of them. Empty:
  // none. Help says nothing of it: `usage` does.
  std::string positional;
  bool many = false;
  bool optional = false;           // it may be left out
  bool numbers = false;            // arguments such as -1 are no options
  std::vector<std::string> words;  // that the first argument without a name can be, where there are few: for completion
};

// With the options that all verbs have.
CommandSpec full_command(CommandSpec spec);
// "-q, --quiet", "--set arg".
std::string written_name(const boost::program_options::option_description& option);
// Of a description, each on a line.
std::vector<std::string> paragraphs_of(const std::string& text);

// The parsed options, or the exit code when there is nothing more to do (help was printed, or the arguments are wrong
// and the error was said). Obeys --help and --log. `spec` is a full_command().
struct Parsed {
  std::optional<int> exit_code;
  boost::program_options::variables_map values;
  std::vector<std::pair<std::string, std::string>> given;  // every option that has a value, in the order given
};
Parsed parse_command(const CommandSpec& spec, Arguments arguments);

template <class T>
T value_or(const boost::program_options::variables_map& values, const char* name, T otherwise) {
  return values.count(name) ? values[name].as<T>() : std::move(otherwise);
}

inline std::optional<std::string> text_of(const boost::program_options::variables_map& values, const char* name) {
  if (!values.count(name)) return {};
  return values[name].as<std::string>();
}

}  // namespace ggufmill
