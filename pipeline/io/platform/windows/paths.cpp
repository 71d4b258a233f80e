#include "pipeline/io/platform/paths.h"

#include <windows.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "pipeline/io/platform/process.h"
#include "pipeline/io/platform/windows/text.h"

namespace ggufmill {
namespace {

// A search for the names that fit a pattern of Windows.
class Search {
 public:
  explicit Search(const std::wstring& pattern)
      : handle_(::FindFirstFileExW(pattern.c_str(), FindExInfoBasic, &found_, FindExSearchNameMatch, nullptr,
                                   FIND_FIRST_EX_LARGE_FETCH)) {}
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;
  ~Search() {
    if (is_open()) ::FindClose(handle_);
  }

  bool is_open() const { return handle_ != INVALID_HANDLE_VALUE; }
  std::string name() const { return windows::narrow(found_.cFileName); }
  bool next() { return ::FindNextFileW(handle_, &found_); }

 private:
  WIN32_FIND_DATAW found_;
  HANDLE handle_;
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Number of bytes of the character at the beginning of a text.
std::size_t character_bytes(std::string_view text) {
  std::size_t bytes = 1;
  while (bytes < text.size() && (text[bytes] & 0xc0) == 0x80) ++bytes;
  return bytes;
}

// Matches one character with [abc], [a-z] or [!a]; `pattern` begins after the bracket. Moves `pattern` behind the set.
bool is_in_set(std::string_view& pattern, char c) {
  const bool is_negated = pattern.starts_with('!') || pattern.starts_with('^');
  if (is_negated) pattern.remove_prefix(1);
  bool found = false;
  for (bool is_first = true; !pattern.empty() && (is_first || pattern[0] != ']'); is_first = false) {
    const char from = lower(pattern[0]);
    char to = from;
    if (pattern.size() > 2 && pattern[1] == '-' && pattern[2] != ']') {
      to = lower(pattern[2]);
      pattern.remove_prefix(2);
    }
    found = found || (from <= lower(c) && lower(c) <= to);
    pattern.remove_prefix(1);
  }
  pattern.remove_prefix(std::min<std::size_t>(1, pattern.size()));
  return found != is_negated;
}

bool fits(std::string_view pattern, std::string_view text) {
  while (!pattern.empty()) {
    if (pattern[0] == '*') {
      while (pattern.starts_with('*')) pattern.remove_prefix(1);
      for (std::size_t skipped = 0; skipped <= text.size(); ++skipped)
        if (fits(pattern, text.substr(skipped))) return true;
      return false;
    }
    if (text.empty()) return false;
    std::size_t bytes = 1;
    if (pattern[0] == '?') {
      bytes = character_bytes(text);
      pattern.remove_prefix(1);
    } else if (pattern[0] == '[') {
      pattern.remove_prefix(1);
      if (!is_in_set(pattern, text[0])) return false;
    } else {
      if (lower(pattern[0]) != lower(text[0])) return false;
      pattern.remove_prefix(1);
    }
    text.remove_prefix(bytes);
  }
  return text.empty();
}

// Adds the paths that begin with `before` and continue with what fits `rest`.
void add_matching(const std::string& before, std::string_view rest, std::vector<std::string>& paths) {
  const std::size_t end = rest.find_first_of("/\\");
  const std::string_view part = rest.substr(0, end);
  const std::string_view left = end == rest.npos ? std::string_view() : rest.substr(end + 1);
  if (part.find_first_of("*?[") == part.npos) {
    const std::string path = before + std::string(rest.substr(0, end == rest.npos ? end : end + 1));
    if (!left.empty()) return add_matching(path, left, paths);
    if (::GetFileAttributesW(windows::native_path(path).c_str()) != INVALID_FILE_ATTRIBUTES) paths.push_back(path);
    return;
  }
  int error = 0;
  for (const std::string& name : names_in_folder(before.empty() ? "." : before, error)) {
    if ((name.starts_with('.') && !part.starts_with('.')) || !fits(part, name)) continue;
    if (end == rest.npos)
      paths.push_back(before + name);
    else
      add_matching(before + name + rest[end], left, paths);
  }
}

}  // namespace

std::vector<std::string> names_in_folder(const std::string& folder, int& error) {
  std::vector<std::string> names;
  error = 0;
  std::wstring pattern = windows::native_path(folder + "\\x");
  pattern.back() = L'*';
  Search search(pattern);
  if (!search.is_open()) {
    error = windows::errno_of(::GetLastError());
    if (error == ENOMEM) throw std::bad_alloc();
    return names;
  }
  do {
    if (std::string name = search.name(); name != "." && name != "..") names.push_back(std::move(name));
  } while (search.next());
  if (::GetLastError() != ERROR_NO_MORE_FILES) error = windows::errno_of(::GetLastError());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> paths_matching(const std::string& pattern) {
  std::vector<std::string> paths;
  add_matching({}, pattern, paths);
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool matches_wildcards(const std::string& pattern, const std::string& text) { return fits(pattern, text); }

std::string home_folder() { return environment_variable("USERPROFILE").value_or(""); }

std::string user_folder(UserFolder) { return environment_variable("LOCALAPPDATA").value_or(""); }

}  // namespace ggufmill
