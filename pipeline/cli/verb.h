#pragma once
// The verbs of the command line: one file for each, and one table of all. Help, manual pages and completion are
// generated from the table.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/api/operations/operation.h"
#include "pipeline/cli/command_line.h"

namespace ggufmill {

inline constexpr std::string_view kProgramSummary = "converts and quantizes model weight files";

// The operations of a verb: one, or those that share it.
using OperationList = std::vector<const OperationSpec*>;

struct Verb {
  std::string name;
  OperationGroup group;
  std::string_view summary;          // one line for `ggufmill --help`, starting with a verb
  CommandSpec (*command)();          // returns its arguments
  int (*run)(const Parsed& parsed);  // returns the exit code
  OperationList operations{};        // what the verb is made from; `command` and `run` are then null
};

extern const Verb kManualVerb;
extern const Verb kCompletionVerb;

// Returns all verbs in the order of `ggufmill --help`.
std::span<const Verb> verbs();

// Returns the arguments of a verb, and runs it.
CommandSpec command_of(const Verb& verb);
int run_verb(const Verb& verb, const Parsed& parsed);

// Returns the arguments of a verb that is made from operations: the options of its operations, --json, --quiet, and
// those of the context.
CommandSpec operation_command(const OperationList& operations);

// Carries out the operation that the arguments choose, prints the result, and returns the exit code. An operation on
// several words is carried out for each, and the exit code is the first that is not 0.
int run_operation(const OperationList& operations, const Parsed& parsed);

}  // namespace ggufmill
