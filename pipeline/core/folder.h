#pragma once
// What a folder holds.

#include <string>
#include <vector>

namespace ggufmill {

// The names in a folder, sorted, without "." and "..". `error` is errno where the folder cannot be read, else 0.
// Throws std::bad_alloc where there is no memory; the iterators of std::filesystem end the program then.
std::vector<std::string> names_in_folder(const std::string& folder, int& error);

}  // namespace ggufmill
