#pragma once
// The two implementations of IoService.

#include <memory>

#include "pipeline/io/io_service.h"

namespace ggufmill {

// Exit code 75 where the system has no threads left.
Result<std::unique_ptr<IoService>> start_thread_service();

// Exit code 5, saying why, where this build or this system has no io_uring.
Result<std::unique_ptr<IoService>> start_uring_service();

// Empty: io_uring works here for what we ask of it (a write and a read back in memory are tried). Else the reason.
std::string why_no_uring();

}  // namespace ggufmill
