#pragma once
// The subset of <filesystem> that this project uses, for Windows: paths are UTF-8 and of any length, and names are
// joined by '/', which Windows accepts, so that addresses stay addresses.

#include <compare>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ggufmill {

std::filesystem::path stream_path(const std::string& path);

inline bool is_separator(char c) { return c == '/' || c == '\\'; }
// The name of a device, such as NUL, is not the name of a file in any folder.
bool is_file_name(std::string_view name);
inline bool leads_outside(std::string_view path) {
  return (!path.empty() && is_separator(path[0])) || path.find("..") != path.npos || path.find(':') != path.npos;
}

namespace fs {

using std::filesystem::copy_options;
using std::filesystem::file_type;
using std::filesystem::perm_options;
using std::filesystem::perms;
using std::filesystem::space_info;
using file_time_type = std::filesystem::file_time_type;

// Every member does what that of std::filesystem::path does.
class path {
 public:
  using value_type = char;
  using string_type = std::string;

  path() = default;
  path(std::string text) : text_(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  path(std::string_view text) : text_(text) {}        // NOLINT(google-explicit-constructor)
  path(const char* text) : text_(text) {}             // NOLINT(google-explicit-constructor)

  operator std::string() const { return text_; }  // NOLINT(google-explicit-constructor)
  const std::string& string() const { return text_; }
  const std::string& native() const { return text_; }
  std::string generic_string() const;
  const char* c_str() const { return text_.c_str(); }
  bool empty() const { return text_.empty(); }

  path parent_path() const;
  path filename() const;
  path stem() const;
  path extension() const;
  path root_path() const { return text_.substr(0, root_length()); }
  path relative_path() const { return text_.substr(root_length()); }
  path lexically_normal() const;
  path lexically_relative(const path& base) const;
  bool has_parent_path() const { return !parent_path().empty(); }
  bool has_filename() const { return !filename().empty(); }
  bool has_relative_path() const { return root_length() < text_.size(); }
  bool has_extension() const { return !extension().empty(); }
  bool is_absolute() const;
  bool is_relative() const { return !is_absolute(); }

  path& replace_extension(const path& extension = {});
  path& operator/=(const path& other);
  path& operator+=(std::string_view more) { return text_ += more, *this; }
  friend path operator/(path a, const path& b) { return a /= b; }

  // By names, so that "a/b" comes before "a-b".
  std::strong_ordering operator<=>(const path& other) const;
  bool operator==(const path& other) const { return (*this <=> other) == 0; }

  std::vector<path> names() const;  // the root, if there is one, is the first
  auto begin() const { return Iterator(names()); }
  auto end() const { return Iterator(std::vector<path>()); }

  template <class Stream>
  friend Stream& operator<<(Stream& stream, const path& path) {
    return stream << '"' << path.text_ << '"', stream;
  }

 private:
  class Iterator {
   public:
    using value_type = path;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    explicit Iterator(std::vector<path> names) : names_(std::move(names)) {}
    const path& operator*() const { return names_[at_]; }
    Iterator& operator++() { return ++at_, *this; }
    void operator++(int) { ++at_; }
    bool operator==(const Iterator& other) const { return names_.size() - at_ == other.names_.size() - other.at_; }

   private:
    std::vector<path> names_;
    std::size_t at_ = 0;
  };
  std::size_t root_length() const;

  std::string text_;
};

class file_status {
 public:
  explicit file_status(file_type type = file_type::none, perms permissions = perms::unknown)
      : type_(type), permissions_(permissions) {}
  file_type type() const { return type_; }
  perms permissions() const { return permissions_; }

 private:
  file_type type_;
  perms permissions_;
};

class filesystem_error : public std::system_error {
 public:
  filesystem_error(const std::string& what, fs::path path, std::error_code code)
      : system_error(code, what + " [" + path.string() + "]"), path1_(std::move(path)) {}
  const fs::path& path1() const { return path1_; }

 private:
  fs::path path1_;
};

// Those without `error` throw filesystem_error.
file_status status(const path& path, std::error_code& error);
file_status status(const path& path);
file_status symlink_status(const path& path, std::error_code& error);
inline bool is_symlink(const path& path, std::error_code& error) {
  return symlink_status(path, error).type() == file_type::symlink;
}
inline bool exists(const path& path, std::error_code& error) {
  return status(path, error).type() != file_type::not_found && !error;
}
bool exists(const path& path);
inline bool is_directory(file_status status) { return status.type() == file_type::directory; }
inline bool is_directory(const path& path, std::error_code& error) { return is_directory(status(path, error)); }
bool is_directory(const path& path);
inline bool is_regular_file(const path& path, std::error_code& error) {
  return status(path, error).type() == file_type::regular;
}
bool is_regular_file(const path& path);
std::uintmax_t file_size(const path& path, std::error_code& error);
std::uintmax_t file_size(const path& path);
std::uintmax_t hard_link_count(const path& path);
// Returns true if both are the same file or folder.
bool equivalent(const path& a, const path& b, std::error_code& error);

path absolute(const path& path, std::error_code& error);
path absolute(const path& path);
path canonical(const path& path, std::error_code& error);
path canonical(const path& path);
// Unlike that of std::filesystem: where the link leads in the end, from the root.
inline path read_symlink(const path& link, std::error_code& error) { return canonical(link, error); }
path weakly_canonical(const path& path, std::error_code& error);
path relative(const path& path, const fs::path& base);
path current_path();
void current_path(const path& path, std::error_code& error);
void current_path(const path& path);
path temp_directory_path();

bool create_directory(const path& path);
bool create_directories(const path& path, std::error_code& error);
bool create_directories(const path& path);
bool remove(const path& path, std::error_code& error);
bool remove(const path& path);
std::uintmax_t remove_all(const path& path, std::error_code& error);
std::uintmax_t remove_all(const path& path);
void rename(const path& from, const path& to, std::error_code& error);
void rename(const path& from, const path& to);
bool copy_file(const path& from, const path& to, copy_options options, std::error_code& error);
bool copy_file(const path& from, const path& to, copy_options options = copy_options::none);
void copy(const path& from, const path& to, copy_options options = copy_options::none);
void create_symlink(const path& target, const path& link);
void create_hard_link(const path& target, const path& link);
void resize_file(const path& path, std::uintmax_t bytes, std::error_code& error);
void resize_file(const path& path, std::uintmax_t bytes);
// Windows has no such permissions: does nothing, as on a FAT file system.
inline void permissions(const path&, perms, perm_options, std::error_code&) {}
inline void permissions(const path&, perms, std::error_code&) {}
inline void permissions(const path&, perms, perm_options = perm_options::replace) {}
space_info space(const path& path, std::error_code& error);
file_time_type last_write_time(const path& path);
void last_write_time(const path& path, file_time_type time);

class directory_entry {
 public:
  directory_entry() = default;
  explicit directory_entry(fs::path path) : path_(std::move(path)) {}
  const fs::path& path() const { return path_; }
  operator const fs::path&() const { return path_; }  // NOLINT(google-explicit-constructor)
  bool is_directory() const { return fs::is_directory(path_); }
  bool is_regular_file() const { return fs::is_regular_file(path_); }
  std::uintmax_t file_size() const { return fs::file_size(path_); }

 private:
  fs::path path_;
};

// The entries of a folder, read when it is created.
class directory_iterator {
 public:
  using value_type = directory_entry;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;
  using pointer = const directory_entry*;
  using reference = const directory_entry&;

  directory_iterator() = default;
  explicit directory_iterator(const path& folder);
  directory_iterator(const path& folder, std::error_code& error);
  const directory_entry& operator*() const { return entries_[at_]; }
  const directory_entry* operator->() const { return &entries_[at_]; }
  directory_iterator& operator++() { return ++at_, *this; }
  void operator++(int) { ++at_; }
  bool operator==(const directory_iterator& other) const {
    return entries_.size() - at_ == other.entries_.size() - other.at_;
  }

 protected:
  std::vector<directory_entry> entries_;
  std::size_t at_ = 0;
};

// Also those of the folders in it, each after its folder.
class recursive_directory_iterator : public directory_iterator {
 public:
  recursive_directory_iterator() = default;
  explicit recursive_directory_iterator(const path& folder);

 private:
  void add(const path& folder);
};

inline directory_iterator begin(directory_iterator iterator) { return iterator; }
inline directory_iterator end(const directory_iterator&) { return {}; }
inline recursive_directory_iterator begin(recursive_directory_iterator iterator) { return iterator; }
inline recursive_directory_iterator end(const recursive_directory_iterator&) { return {}; }

}  // namespace fs
}  // namespace ggufmill
