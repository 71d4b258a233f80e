#pragma once
// The io_uring of Linux.

#include <string>

namespace ggufmill {

// Returns an empty string if io_uring works here as needed (a write and a read of memory are tried), else the reason
// why it does not.
std::string why_no_uring();

}  // namespace ggufmill
