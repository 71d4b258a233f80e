#pragma once
// The arguments of a verb that is made from operations: their options, and those that all have on the command line.

#include "pipeline/cli/verb.h"

namespace ggufmill {

// The options that decide what is printed.
struct Shown {
  bool json = false, quiet = false;
};

// An option of a verb, and the operations that have it.
struct VerbOption {
  OperationOption option;
  OperationList users;
};

// Returns the options of a verb that have flags, in the order of its help.
std::vector<VerbOption> verb_options(const OperationList& operations);
// Returns the options of one operation that are not its own, without their descriptions.
std::vector<OperationOption> shown_options(const OperationSpec& operation);
// Returns all options.
std::vector<OperationOption> all_options(const OperationSpec& operation);
std::vector<OperationOption> all_options(const OperationList& operations);

// Returns the options that are given without flags, in order.
std::vector<const OperationOption*> words_of(const OperationSpec& operation);
// Returns true if the operation is carried out for each of several words.
bool takes_each(const OperationSpec& operation);
std::string usage_of(const OperationSpec& operation);  // "ggufmill hash MODEL... [options]"

// Returns true if the choice of an operation is a flag, "--check", rather than a word.
bool is_flag(std::string_view choice);
std::string choice_text(const OperationSpec& operation);                           // "--check" or "`show`"
std::string choices_text(const OperationList& operations, std::string_view last);  // "`show`, `check`, and `diff`"
bool has_usual(const OperationList& operations);

// Verbs that are not operations. Adds the options that have flags to the arguments of a verb.
void add_options(const std::vector<OperationOption>& options, CommandSpec& spec);
// Reads the options and words of a command line into the struct that they are bound to.
Status read_options(const CommandSpec& spec, const std::vector<OperationOption>& options, const Parsed& parsed,
                    void* into);

}  // namespace ggufmill
