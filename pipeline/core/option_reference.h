#pragma once
// References to options in the texts of errors. The code that finds an error does not know whether a command line, a C
// program or a Python program gave the option; who reports it does, and writes --max-rmse, "max_rmse" or max_rmse=.
// Text from outside, such as a path, is never taken for a reference. References are valid only in the process that made
// them: replace them in what is written to files.

#include <functional>
#include <string>
#include <string_view>

namespace ggufmill {

// Returns a reference to the option with this name, or to the option with a value: "--memory 8192". render() writes a
// reference that nobody has replaced as the name, with the value after a colon.
std::string option_reference(std::string_view name, std::string_view value = {});
bool has_option_reference(std::string_view text);

// Returns a text with two forms: one that names keys, for the user of a pipeline file, and one that names options, for
// a user whose options were translated into a pipeline file. Both may have references. It is the first until
// as_for_options() chooses the second.
std::string keys_or_options(std::string_view keys, std::string_view options);
bool has_keys_or_options(std::string_view text);
std::string as_for_keys(std::string_view text);
std::string as_for_options(std::string_view text);

// Replaces every reference in a text. `value` is empty if there is none.
using OptionWriter = std::function<std::string(std::string_view name, std::string_view value)>;
std::string replace_option_references(std::string_view text, const OptionWriter& write);
// Replaces them with the names of the options, as in a pipeline file: "memory: 8192".
std::string with_plain_options(std::string_view text);

}  // namespace ggufmill
