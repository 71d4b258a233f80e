#pragma once
// Where modules are looked for, and which places are safe to load code from.

#include <string>
#include <vector>

namespace ggufmill {

// The host's own module directory: ggufmill/ beside libggufmill; "../lib/ggufmill" from the folder of a program that
// has it linked in. Empty when the system does not say where that is.
std::string own_module_directory();

// The paths of the `*.so` in a directory, sorted by name. False, with the system's words in `reason`, when it cannot be
// read.
bool list_modules(const std::string& directory, std::vector<std::string>& paths, std::string& reason);

// Why no code may be loaded from a file or directory: anyone can have put it there. Empty when it may. Symbolic links
// are followed.
std::string why_unsafe(const std::string& path);

}  // namespace ggufmill
