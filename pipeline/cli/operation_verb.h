#pragma once
// Operations as verbs.

#include "pipeline/api/operations/operation.h"
#include "pipeline/cli/command_line.h"

namespace ggufmill {

// The operations of a verb: one, or those that share it.
using OperationList = std::vector<const OperationSpec*>;

// Returns the arguments of the verb: the options of its operations, --json, --quiet, and those of the context.
CommandSpec operation_command(const OperationList& operations);

// Carries out the operation that the arguments choose, prints the result, and returns the exit code. An operation on
// several words is carried out for each, and the exit code is the first that is not 0.
int run_operation(const OperationList& operations, const Parsed& parsed);

}  // namespace ggufmill
