#pragma once
// The options of a Context, as rows: those of ggufmill_context_create(), and of the verbs of operations.

#include <string>
#include <vector>

#include "pipeline/api/operations/operation.h"

namespace ggufmill {

struct ContextRequest {
  std::vector<std::string> kernel_dirs{};
  std::string isa{};
  std::vector<std::string> architectures{};
};

// Returns the options that have an effect for this use. They are read into a ContextRequest.
std::vector<OperationOption> context_options(ContextUse use);
Result<Context> create_context(const ContextRequest& request);

}  // namespace ggufmill
