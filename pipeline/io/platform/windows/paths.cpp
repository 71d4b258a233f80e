#include "pipeline/io/platform/paths.h"

#include <windows.h>

#include <algorithm>
#include <new>
#include <optional>
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

// Matches one character with [abc], [a-z] or [!a]; `pattern` begins after the bracket. Moves `pattern` past the set.
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

// Matches one character with what `pattern` begins with, and moves both past it.
bool take_one(std::string_view& pattern, std::string_view& text) {
  if (pattern.empty() || text.empty()) return false;
  const char first = pattern[0];
  pattern.remove_prefix(1);
  const std::size_t bytes = first == '?' ? character_bytes(text) : 1;
  const bool fits = first == '?' || (first == '[' ? is_in_set(pattern, text[0]) : lower(first) == lower(text[0]));
  text.remove_prefix(bytes);
  return fits;
}

// Only the last * can need another length: what precedes it fits at its first place, which leaves most to the rest.
bool fits(std::string_view pattern, std::string_view text) {
  std::optional<std::string_view> after_star;
  std::string_view retried;  // the text at which `after_star` was tried last
  while (!text.empty() || !pattern.empty()) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      after_star = pattern;
      retried = text;
    } else if (!take_one(pattern, text)) {
      if (!after_star || retried.empty()) return false;
      retried.remove_prefix(1);
      pattern = *after_star;
      text = retried;
    }
  }
  return true;
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

bool matches_wildcards(const std::string& pattern, const std::string& text) { return fits(pattern, text); }

std::string home_folder() { return environment_variable("USERPROFILE").value_or(""); }

std::string user_folder(UserFolder) { return environment_variable("LOCALAPPDATA").value_or(""); }

}  // namespace ggufmill
