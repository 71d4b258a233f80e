#include "pipeline/api/operations/context_options.h"

namespace ggufmill {

std::vector<OperationOption> context_options(ContextUse use) {
  std::vector<OperationOption> options;
  if (use == ContextUse::kCheckpoints || use == ContextUse::kMaps)
    options.push_back(option("architectures", &ContextRequest::architectures, list_of(path()), kArchitecturesHelp));
  if (use != ContextUse::kNone && use != ContextUse::kMaps)
    options.push_back(option("kernel_dirs", &ContextRequest::kernel_dirs, list_of(path()),
                             use == ContextUse::kTypes ? "folder with kernel modules that add types"
                                                       : "folder with additional kernel modules")
                          .on_command_line("kernel-dir"));
  if (use == ContextUse::kKernels || use == ContextUse::kCheckpoints)
    options.push_back(
        option("isa", &ContextRequest::isa, text(), "use only kernels for this ISA; `ggufmill kernels` lists them"));
  return options;
}

Result<Context> create_context(const ContextRequest& request) {
  return Context::create({request.kernel_dirs, request.isa}, request.architectures);
}

}  // namespace ggufmill
