#include "pipeline/io/platform/windows/filesystem.h"

#include <windows.h>

#include <algorithm>
#include <cerrno>

#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/platform/windows/text.h"

namespace ggufmill {

std::filesystem::path stream_path(const std::string& path) { return windows::native_path(path); }

bool is_file_name(std::string_view name) {
  constexpr std::string_view kForbidden("/\\:*?\"<>|", 9);
  constexpr std::string_view kDevices[] = {"con", "prn", "aux", "nul"}, kNumbered[] = {"com", "lpt"};
  const auto is_bad = [&](char c) {
    return static_cast<unsigned char>(c) < ' ' || kForbidden.find(c) != kForbidden.npos;
  };
  if (name.empty() || name.back() == '.' || name.back() == ' ' || std::ranges::any_of(name, is_bad)) return false;
  std::string stem(name.substr(0, name.find('.')));
  std::ranges::transform(stem, stem.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const bool is_numbered = stem.size() == 4 && stem[3] >= '0' && stem[3] <= '9';
  return std::ranges::count(kDevices, stem) == 0 &&
         !(is_numbered && std::ranges::count(kNumbered, std::string_view(stem).substr(0, 3)) != 0);
}

namespace fs {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::error_code last_error() { return {windows::errno_of(::GetLastError()), std::generic_category()}; }

std::error_code error_of(int number) { return {number, std::generic_category()}; }

void check(const std::error_code& error, const char* action, const path& path) {
  if (error) throw filesystem_error(std::string("cannot ") + action, path, error);
}

std::string with_slashes(std::wstring text) {
  std::ranges::replace(text, L'\\', L'/');
  return windows::narrow(text);
}

file_status status_of(const path& path, Links links, std::error_code& error) {
  FileStatus status;
  error.clear();
  if (kernel_calls().status_at(kCurrentFolder, path.c_str(), links, &status) != 0) {
    if (errno == ENOENT) return file_status(file_type::not_found);
    error = error_of(errno);
    return file_status(file_type::none);
  }
  using Kind = FileStatus::Kind;
  return file_status(status.kind == Kind::kFile     ? file_type::regular
                     : status.kind == Kind::kFolder ? file_type::directory
                     : status.kind == Kind::kLink   ? file_type::symlink
                                                    : file_type::unknown,
                     static_cast<perms>(status.mode));
}

}  // namespace

// ---- paths ----

// "C:", "C:/", "//server/", "/"
std::size_t path::root_length() const {
  std::size_t length = 0;
  if (text_.size() >= 2 && is_letter(text_[0]) && text_[1] == ':') {
    length = 2;
  } else if (text_.size() > 2 && is_separator(text_[0]) && is_separator(text_[1]) && !is_separator(text_[2])) {
    length = 2;
    while (length < text_.size() && !is_separator(text_[length])) ++length;
  }
  while (length < text_.size() && is_separator(text_[length])) ++length;
  return length;
}

bool path::is_absolute() const {
  const std::size_t root = root_length();
  return root > 1 && is_separator(text_[root - 1]);
}

std::string path::generic_string() const {
  std::string out = text_;
  std::ranges::replace(out, '\\', '/');
  return out;
}

path path::filename() const {
  std::size_t begin = text_.size();
  while (begin > root_length() && !is_separator(text_[begin - 1])) --begin;
  return text_.substr(begin);
}

path path::parent_path() const {
  const std::size_t root = root_length();
  std::size_t end = text_.size();
  while (end > root && !is_separator(text_[end - 1])) --end;
  while (end > root && is_separator(text_[end - 1])) --end;
  return text_.substr(0, end);
}

path path::extension() const {
  const std::string name = filename();
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos || dot == 0 || name == "..") return {};
  return name.substr(dot);
}

path path::stem() const {
  const std::string name = filename();
  return name.substr(0, name.size() - extension().string().size());
}

path& path::replace_extension(const path& extension) {
  text_.resize(text_.size() - this->extension().string().size());
  if (!extension.empty() && !extension.text_.starts_with('.')) text_ += '.';
  text_ += extension.text_;
  return *this;
}

path& path::operator/=(const path& other) {
  const std::size_t root = other.root_length();
  if (root > 1 || other.is_absolute()) return *this = other;
  if (root == 1) {  // of the same drive
    text_ = text_.size() >= 2 && text_[1] == ':' ? text_.substr(0, 2) + other.text_ : other.text_;
    return *this;
  }
  const bool is_drive = text_.size() == 2 && text_[1] == ':';
  if (!text_.empty() && !is_separator(text_.back()) && !is_drive) text_ += '/';
  text_ += other.text_;
  return *this;
}

std::vector<path> path::names() const {
  std::vector<path> names;
  const std::size_t root = root_length();
  if (root > 0) {
    std::string text = text_.substr(0, root);
    std::ranges::replace(text, '\\', '/');
    while (text.size() > 1 && text.ends_with("//")) text.pop_back();
    names.emplace_back(std::move(text));
  }
  for (std::size_t at = root; at < text_.size();) {
    const std::size_t end = std::min(text_.find_first_of("/\\", at), text_.size());
    names.emplace_back(text_.substr(at, end - at));
    at = end;
    while (at < text_.size() && is_separator(text_[at])) ++at;
    if (at == text_.size() && end < text_.size()) names.emplace_back();  // ends with a separator
  }
  return names;
}

std::strong_ordering path::operator<=>(const path& other) const {
  const std::vector<path> a = names(), b = other.names();
  return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end(),
                                                [](const path& x, const path& y) { return x.text_ <=> y.text_; });
}

path path::lexically_normal() const {
  std::vector<path> kept;
  const std::size_t roots = root_length() > 0 ? 1 : 0;
  const std::vector<path> all = names();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& name = all[i].text_;
    const bool is_last = i + 1 == all.size();
    if (i >= roots && (name == "." || name.empty())) {
      if (is_last && kept.size() > roots && kept.back().text_ != "..") kept.emplace_back();
    } else if (name == ".." && kept.size() > roots && kept.back().text_ != "..") {
      kept.pop_back();
      if (is_last && kept.size() > roots) kept.emplace_back();
    } else if (name != ".." || roots == 0) {
      kept.push_back(all[i]);
    }
  }
  if (kept.empty()) return text_.empty() ? path() : path(".");
  path out;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].empty())
      out.text_ += '/';
    else
      out /= kept[i];
  }
  return out;
}

path path::lexically_relative(const path& base) const {
  const std::vector<path> a = names(), b = base.names();
  const auto [rest, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  path out;
  for (auto name = other; name != b.end(); ++name)
    if (!name->empty() && name->text_ != ".") out /= "..";
  for (auto name = rest; name != a.end(); ++name) out /= *name;
  return out.empty() ? path(".") : out;
}

// ---- files ----

file_status status(const path& path, std::error_code& error) { return status_of(path, Links::kFollow, error); }

file_status status(const path& path) {
  std::error_code error;
  const file_status found = status(path, error);
  check(error, "inspect", path);
  return found;
}

file_status symlink_status(const path& path, std::error_code& error) {
  return status_of(path, Links::kNoFollow, error);
}

bool exists(const path& path) { return status(path).type() != file_type::not_found; }
bool is_directory(const path& path) { return is_directory(status(path)); }
bool is_regular_file(const path& path) { return status(path).type() == file_type::regular; }

std::uintmax_t file_size(const path& path, std::error_code& error) {
  FileStatus status;
  error.clear();
  if (kernel_calls().status_at(kCurrentFolder, path.c_str(), Links::kFollow, &status) == 0) return status.bytes;
  error = error_of(errno);
  return static_cast<std::uintmax_t>(-1);
}

std::uintmax_t file_size(const path& path) {
  std::error_code error;
  const std::uintmax_t bytes = file_size(path, error);
  check(error, "inspect", path);
  return bytes;
}

std::uintmax_t hard_link_count(const path& path) {
  FileStatus status;
  if (kernel_calls().status_at(kCurrentFolder, path.c_str(), Links::kFollow, &status) != 0)
    check(error_of(errno), "inspect", path);
  return status.links;
}

bool equivalent(const path& a, const path& b, std::error_code& error) {
  FileStatus of_a, of_b;
  error.clear();
  if (kernel_calls().status_at(kCurrentFolder, a.c_str(), Links::kFollow, &of_a) != 0 ||
      kernel_calls().status_at(kCurrentFolder, b.c_str(), Links::kFollow, &of_b) != 0)
    error = error_of(errno);
  return !error && of_a.device == of_b.device && of_a.inode == of_b.inode;
}

path absolute(const path& path, std::error_code& error) {
  error.clear();
  return with_slashes(windows::without_prefix(windows::native_path(path)));
}

path absolute(const path& path) {
  std::error_code error;
  return absolute(path, error);
}

path canonical(const path& path, std::error_code& error) {
  error.clear();
  const windows::Handle file(::CreateFileW(windows::native_path(path).c_str(), 0,
                                           FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                           OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  if (!file) return error = last_error(), fs::path();
  std::wstring name(::GetFinalPathNameByHandleW(file.get(), nullptr, 0, FILE_NAME_NORMALIZED), L'\0');
  name.resize(
      ::GetFinalPathNameByHandleW(file.get(), name.data(), static_cast<DWORD>(name.size()), FILE_NAME_NORMALIZED));
  return with_slashes(windows::without_prefix(name));
}

path canonical(const path& path) {
  std::error_code error;
  fs::path found = canonical(path, error);
  check(error, "find", path);
  return found;
}

path weakly_canonical(const path& path, std::error_code& error) {
  fs::path there = absolute(path, error), rest;
  while (!exists(there, error) && there.has_relative_path()) {
    rest = rest.empty() ? there.filename() : there.filename() / rest;
    there = there.parent_path();
  }
  fs::path found = canonical(there, error);
  if (error) {
    error.clear();
    found = there;
  }
  return rest.empty() ? found : found / rest;
}

path relative(const path& path, const fs::path& base) {
  std::error_code error;
  return weakly_canonical(path, error).lexically_relative(weakly_canonical(base, error));
}

path current_path() {
  std::wstring name(::GetCurrentDirectoryW(0, nullptr), L'\0');
  name.resize(::GetCurrentDirectoryW(static_cast<DWORD>(name.size()), name.data()));
  return with_slashes(windows::without_prefix(name));
}

void current_path(const path& path, std::error_code& error) {
  error.clear();
  if (!::SetCurrentDirectoryW(windows::native_path(path).c_str())) error = last_error();
}

void current_path(const path& path) {
  std::error_code error;
  current_path(path, error);
  check(error, "enter", path);
}

path temp_directory_path() {
  std::wstring name(MAX_PATH + 1, L'\0');
  name.resize(::GetTempPathW(static_cast<DWORD>(name.size()), name.data()));
  return fs::path(with_slashes(name)).lexically_normal();
}

bool create_directory(const path& path) {
  if (kernel_calls().make_folder(kCurrentFolder, path.c_str(), 0777) == 0) return true;
  if (errno == EEXIST && is_directory(path)) return false;
  return check(error_of(errno), "create", path), false;
}

bool create_directories(const path& path, std::error_code& error) {
  error.clear();
  if (is_directory(path, error)) return false;
  if (const fs::path above = path.parent_path(); !above.empty() && above != path && !exists(above, error))
    if (create_directories(above, error); error) return false;
  error.clear();
  if (path.filename().empty() || kernel_calls().make_folder(kCurrentFolder, path.c_str(), 0777) == 0) return true;
  if (errno != EEXIST || !is_directory(path, error)) error = error_of(errno);
  return false;
}

bool create_directories(const path& path) {
  std::error_code error;
  const bool is_created = create_directories(path, error);
  check(error, "create", path);
  return is_created;
}

bool remove(const path& path, std::error_code& error) {
  const file_status found = symlink_status(path, error);
  if (error || found.type() == file_type::not_found) return false;
  const auto& calls = kernel_calls();
  const auto call = is_directory(found) ? calls.remove_folder : calls.remove;
  if (call(kCurrentFolder, path.c_str()) == 0) return true;
  if (errno != ENOENT) error = error_of(errno);
  return false;
}

bool remove(const path& path) {
  std::error_code error;
  const bool is_removed = remove(path, error);
  check(error, "remove", path);
  return is_removed;
}

std::uintmax_t remove_all(const path& path, std::error_code& error) {
  std::uintmax_t count = 0;
  if (const file_status found = symlink_status(path, error); is_directory(found))
    for (const directory_entry& entry : directory_iterator(path, error)) {
      if (error) break;
      count += remove_all(entry.path(), error);
    }
  if (!error && remove(path, error)) ++count;
  return count;
}

std::uintmax_t remove_all(const path& path) {
  std::error_code error;
  const std::uintmax_t count = remove_all(path, error);
  check(error, "remove", path);
  return count;
}

void rename(const path& from, const path& to, std::error_code& error) {
  error.clear();
  if (kernel_calls().rename(kCurrentFolder, from.c_str(), kCurrentFolder, to.c_str(), Rename::kReplace) != 0)
    error = error_of(errno);
}

void rename(const path& from, const path& to) {
  std::error_code error;
  rename(from, to, error);
  check(error, "rename", from);
}

bool copy_file(const path& from, const path& to, copy_options options, std::error_code& error) {
  error.clear();
  const bool keeps = (options & copy_options::overwrite_existing) == copy_options::none;
  if ((options & copy_options::skip_existing) != copy_options::none && exists(to, error)) return false;
  if (::CopyFileW(windows::native_path(from).c_str(), windows::native_path(to).c_str(), keeps)) return true;
  return error = last_error(), false;
}

bool copy_file(const path& from, const path& to, copy_options options) {
  std::error_code error;
  const bool is_copied = copy_file(from, to, options, error);
  check(error, "copy", from);
  return is_copied;
}

void copy(const path& from, const path& to, copy_options options) {
  if (!is_directory(from)) {
    copy_file(from, is_directory(to) ? to / from.filename() : to, options);
    return;
  }
  create_directories(to);
  for (const directory_entry& entry : directory_iterator(from)) {
    const fs::path target = to / entry.path().filename();
    if (!entry.is_directory())
      copy_file(entry.path(), target, options);
    else if ((options & copy_options::recursive) != copy_options::none)
      copy(entry.path(), target, options);
  }
}

void create_symlink(const path& target, const path& link) {
  std::wstring text = windows::wide(target.string());
  std::ranges::replace(text, L'/', L'\\');
  constexpr DWORD kWithoutPrivilege = 0x2;  // for developers, since Windows 10 1703
  if (!::CreateSymbolicLinkW(windows::native_path(link).c_str(), text.c_str(), kWithoutPrivilege))
    check(last_error(), "create the link", link);
}

void create_hard_link(const path& target, const path& link) {
  if (kernel_calls().link(kCurrentFolder, target.c_str(), kCurrentFolder, link.c_str()) != 0)
    check(error_of(errno), "create the link", link);
}

void resize_file(const path& path, std::uintmax_t bytes, std::error_code& error) {
  error.clear();
  const Descriptor file(kernel_calls().open(kCurrentFolder, path.c_str(), kOpenWrite, 0));
  if (!file || kernel_calls().resize(file.get(), bytes) != 0) error = error_of(errno);
}

void resize_file(const path& path, std::uintmax_t bytes) {
  std::error_code error;
  resize_file(path, bytes, error);
  check(error, "resize", path);
}

space_info space(const path& path, std::error_code& error) {
  ULARGE_INTEGER available{}, capacity{}, free{};
  error.clear();
  if (!::GetDiskFreeSpaceExW(windows::native_path(path).c_str(), &available, &capacity, &free)) error = last_error();
  return {capacity.QuadPart, free.QuadPart, available.QuadPart};
}

file_time_type last_write_time(const path& path) {
  return std::filesystem::last_write_time(std::filesystem::path(windows::native_path(path)));
}

void last_write_time(const path& path, file_time_type time) {
  std::filesystem::last_write_time(std::filesystem::path(windows::native_path(path)), time);
}

// ---- folders ----

directory_iterator::directory_iterator(const path& folder, std::error_code& error) {
  int number = 0;
  for (const std::string& name : names_in_folder(folder, number)) entries_.emplace_back(folder / name);
  error = error_of(number);
}

directory_iterator::directory_iterator(const path& folder) {
  std::error_code error;
  *this = directory_iterator(folder, error);
  check(error, "list", folder);
}

recursive_directory_iterator::recursive_directory_iterator(const path& folder) { add(folder); }

void recursive_directory_iterator::add(const path& folder) {
  for (const directory_entry& entry : directory_iterator(folder)) {
    entries_.push_back(entry);
    if (is_directory(entry.path())) add(entry.path());
  }
}

}  // namespace fs
}  // namespace ggufmill
