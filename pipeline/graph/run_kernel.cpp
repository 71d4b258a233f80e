#include "pipeline/graph/run_kernel.h"

#include <fmt/format.h>

namespace ggufmill {

Status run_kernel(const KernelChoice& choice, const ggufmill_call& call, const std::string& tensor) {
  const std::int32_t status = choice.kernel->run(&call);
  if (status == GGUFMILL_OK) return ok();
  if (status == GGUFMILL_CANNOT_REPRESENT)
    return Error{ExitCode::kBadInput, "",
                 fmt::format("tensor '{}': values are too large for {}", tensor, choice.kernel->name),
                 "nothing was written", "choose a type with a greater range for this tensor, such as BF16 or F32"};
  return Error{ExitCode::kInternal, "",
               fmt::format("tensor '{}': kernel {} of module '{}' failed with status {}", tensor, choice.kernel->name,
                           choice.module->name, status),
               "", ""};
}

}  // namespace ggufmill
