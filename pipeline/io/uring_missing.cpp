// Built instead of uring_service.cpp if liburing was not found.

#include "pipeline/io/platform/uring.h"
#include "pipeline/io/services.h"

namespace ggufmill {

Result<std::unique_ptr<IoService>> start_uring_service() {
  return Error{ExitCode::kKernel, "", "io_uring cannot be used: " + why_no_uring(), "",
               "let ggufmill choose (auto), or use threads"};
}

}  // namespace ggufmill
