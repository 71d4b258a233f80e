#pragma once
// Paths and simple operations on files, as in <filesystem>, which no file outside this folder includes. On Windows, the
// paths of that header are not UTF-8, limited to 260 characters, and cannot be joined to addresses (https://...), so
// that the names used here are defined again.

#ifdef _WIN32
#include "pipeline/io/platform/windows/filesystem.h"
#else
#include <filesystem>
#include <string>
#include <string_view>

namespace ggufmill {

namespace fs = std::filesystem;

// Returns the form of a path that streams take.
inline const std::string& stream_path(const std::string& path) { return path; }

// Separates the names in a path.
inline bool is_separator(char c) { return c == '/'; }
// Returns true if a file could have this name in the folder it is given for: one name, neither "." nor "..".
inline bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

// Returns true if a path could name something that is not below the folder it is relative to.
inline bool leads_outside(std::string_view path) { return path.starts_with('/') || path.find("..") != path.npos; }

}  // namespace ggufmill
#endif

namespace ggufmill {

// Returns where the last name of a path begins; its size if it ends with a separator.
inline std::size_t name_begin(std::string_view path) {
  std::size_t begin = path.size();
  while (begin > 0 && !is_separator(path[begin - 1])) --begin;
  return begin;
}

}  // namespace ggufmill
