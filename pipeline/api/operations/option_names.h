#pragma once
// Options as their users write them, in errors and help.

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/api/operations/operation.h"

namespace ggufmill {

// The caller of an operation.
enum class Caller {
  kCommandLine,  // --max-rmse
  kProgram,      // "max_rmse", a key of JSON
  kPython,       // max_rmse=
};

class OptionNames {
 public:
  OptionNames(Caller caller, std::vector<OperationOption> options) : caller_(caller), options_(std::move(options)) {}

  // Returns an option as it is written, with a value if one is given: "--memory 8192". The name need not be one of the
  // options.
  std::string of(std::string_view name, std::string_view value = {}) const;
  // Replaces @NAME and @error3 in a text of a declaration.
  std::string in_text(std::string_view text) const;
  // Replaces option_reference() in a warning or note, and in all texts of an error and of those combined with it.
  std::string in_message(std::string_view message) const;
  Error in_error(Error error) const;

 private:
  const OperationOption* find(std::string_view name) const;
  std::string in_prose(std::string written) const;

  Caller caller_;
  std::vector<OperationOption> options_;
};

// The name of a pipeline file that was made of options.
inline constexpr std::string_view kArgumentsName = "(arguments)";

// Returns an error of such a file for the user of the options: without the place in the file, which the user did not
// write, and with the help that names options, or if it names keys, where to write them.
Error with_help_for_options(Error error);

}  // namespace ggufmill
