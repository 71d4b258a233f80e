#pragma once
// Carries out one request of a verb, with its progress, and prints what it found.

#include <memory>
#include <string>

#include "pipeline/api/operations/option_names.h"
#include "pipeline/cli/messages.h"

namespace ggufmill {

// The options that decide what is printed.
struct Shown {
  bool json = false, quiet = false;
};

// A request, and what the line of progress calls it.
struct OperationRequest {
  std::string name;
  std::shared_ptr<const void> value;
};

// Returns the exit code. `list` is null unless JSON is to be printed.
int run_request(const OperationSpec& operation, const Context& context, const OperationRequest& request,
                const Shown& shown, const OptionNames& names, bool has_heading, JsonList* list);

}  // namespace ggufmill
