#pragma once
// Listing of a folder.

#include <string>
#include <vector>

namespace ggufmill {

// Returns the names in a folder, sorted, without "." and "..". Sets `error` to errno if the folder cannot be read,
// otherwise to 0. Throws std::bad_alloc if memory runs out; the iterators of std::filesystem would terminate the
// program.
std::vector<std::string> names_in_folder(const std::string& folder, int& error);

}  // namespace ggufmill
