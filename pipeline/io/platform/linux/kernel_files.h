#pragma once
// Small files of /proc and /sys.

#include <string>
#include <vector>

namespace ggufmill {

// Returns the contents of a file of the kernel; empty if it is missing or cannot be read, as that of a control group
// that was just removed. Throws std::bad_alloc if there is not enough memory to open it.
std::string kernel_text(const std::string& path);
// Returns the numbers of a list such as "0-3,8"; those before the first character that is none.
std::vector<unsigned> kernel_list(const std::string& text);

}  // namespace ggufmill
