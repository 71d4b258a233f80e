#pragma once
// Operations as verbs.

#include "pipeline/api/operations/operation.h"
#include "pipeline/cli/command_line.h"

namespace ggufmill {

// Returns the arguments of the verb of an operation: its own options, --json, --quiet, and those of the context.
CommandSpec operation_command(const OperationSpec& operation);

// Carries the operation out, prints the result, and returns the exit code. An operation on several words is carried out
// for each, and the exit code is the first that is not 0.
int run_operation(const OperationSpec& operation, const Parsed& parsed);

}  // namespace ggufmill
