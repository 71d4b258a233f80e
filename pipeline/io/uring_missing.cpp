// Built instead of uring_service.cpp if liburing was not found.

#include "pipeline/io/services.h"

namespace ggufmill {

std::string why_no_uring() { return "this ggufmill was built without liburing"; }

Result<std::unique_ptr<IoService>> start_uring_service() {
  return Error{ExitCode::kKernel, "", "io_uring cannot be used: " + why_no_uring(), "",
               "let ggufmill choose (auto), or use threads"};
}

}  // namespace ggufmill
