#pragma once
// The options of a Context, as rows: those of ggufmill_context_create(), and of the verbs of operations.

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/api/operations/operation.h"

namespace ggufmill {

struct ContextRequest {
  std::vector<std::string> kernel_dirs{};
  std::string isa{};
  std::vector<std::string> architectures{};
};

// Help of the option `architectures` of operations that read checkpoints.
inline constexpr const char* kArchitecturesHelp =
    "folder of architecture maps, or one map file, to add to the built-in ones";
// Help of the option `outtype` of operations that read models.
inline constexpr std::string_view kOutTypeHelp =
    "read a checkpoint folder as `ggufmill convert` with the same @outtype would write it";

// Returns the options that have an effect for this use. They are read into a ContextRequest.
std::vector<OperationOption> context_options(ContextUse use);
Result<Context> create_context(const ContextRequest& request);

}  // namespace ggufmill
