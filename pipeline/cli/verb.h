#pragma once
// The verbs of the command line: one file for each, and one table of all. Help, manual pages and completion are
// generated from the table.

#include <span>
#include <string_view>

#include "pipeline/api/operations/operation.h"
#include "pipeline/cli/command_line.h"
#include "pipeline/cli/operation_verb.h"

namespace ggufmill {

inline constexpr std::string_view kProgramSummary = "converts and quantizes model weight files";

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

}  // namespace ggufmill
