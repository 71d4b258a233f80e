#pragma once
// Names of files, and folders of the user. Paths are UTF-8.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ggufmill {

// Returns the names in a folder, sorted, without "." and "..". Sets `error` to errno if the folder cannot be read,
// otherwise to 0. Throws std::bad_alloc if memory runs out; the iterators of std::filesystem would terminate the
// program.
std::vector<std::string> names_in_folder(const std::string& folder, int& error);

// Most names of files and folders that paths_matching() looks at.
inline constexpr std::size_t kMaxLookups = 200'000;
// Returns the paths of existing files and folders that fit a pattern with the wildcards *, ? and [...], sorted; nullopt
// if finding them takes more than kMaxLookups names, which links between folders and ".." can multiply. A wildcard fits
// no leading dot.
std::optional<std::vector<std::string>> paths_matching(const std::string& pattern);
// Returns true if a text fits such a pattern.
bool matches_wildcards(const std::string& pattern, const std::string& text);

// Home folder of this user; empty if unknown.
std::string home_folder();

enum class UserFolder {
  kCache,  // data that can be made again
  kState,  // data that should survive, but is of no use on another machine
};
// Folder in which the programs of this user keep such data; empty if unknown. It may not exist yet.
std::string user_folder(UserFolder kind);

}  // namespace ggufmill
