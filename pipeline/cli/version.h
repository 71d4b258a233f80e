#pragma once
// The text of `ggufmill --version --verbose`.

#include <string>

namespace ggufmill {

// Lists the version of the program, those of the libraries that it uses, and where it finds its files.
std::string verbose_version();

}  // namespace ggufmill
