#include "pipeline/io/source_path.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "pipeline/core/folder.h"
#include "pipeline/io/input_file.h"

namespace ggufmill {

namespace fs = std::filesystem;

bool is_address(std::string_view path) {
  const std::size_t end = path.find("://");
  if (end == path.npos || end == 0) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return is_letter(path.front()) && std::ranges::all_of(path.substr(0, end), [&](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
         });
}

Result<std::shared_ptr<const ByteSource>> ByteSource::open(const SourceFile& described, IoMode mode,
                                                           const std::atomic<bool>* stop) {
  if (is_address(described.path)) return remote::open(described, stop);
  BOOST_OUTCOME_TRY(auto file, InputFile::open(described.path, mode));
  if (!is_same(described, *file->describe())) return changed(described, *file->describe());
  return std::shared_ptr<const ByteSource>(std::move(file));
}

Result<std::shared_ptr<const ByteSource>> open_source(const std::string& path) {
  if (is_address(path)) return remote::open(path);
  BOOST_OUTCOME_TRY(auto file, InputFile::open(path));
  return std::shared_ptr<const ByteSource>(std::move(file));
}

Result<std::string> pinned(const std::string& path) {
  if (is_address(path)) return remote::pinned(path);
  return path;
}

bool is_file(const std::string& path) {
  if (is_address(path)) return remote::is_file(path);
  std::error_code none;
  return fs::is_regular_file(path, none);
}

bool is_folder(const std::string& path) {
  if (is_address(path)) return remote::is_folder(path);
  std::error_code none;
  return fs::is_directory(path, none);
}

std::string_view kind_of_path(const std::string& path) {
  struct stat info {};
  if (is_address(path) || ::lstat(path.c_str(), &info) != 0) return {};
  if (S_ISLNK(info.st_mode) && ::stat(path.c_str(), &info) != 0) return "a broken link";
  return kind_of_mode(info.st_mode);
}

Result<std::vector<std::string>> paths_in(const std::string& folder) {
  if (is_address(folder)) return remote::paths_in(folder);
  int error = 0;
  std::vector<std::string> paths = names_in_folder(folder, error);
  if (error != 0) return io_error(folder, "list the folder", error);
  for (std::string& path : paths) path = fs::path(folder) / path;
  return paths;
}

std::string name_of_address(std::string_view address) {
  while (address.ends_with('/')) address.remove_suffix(1);
  std::string_view name = address.substr(address.rfind('/') + 1);
  return std::string(name.substr(0, name.find('@')));
}

bool is_same(const SourceFile& a, const SourceFile& b) {
  return a.bytes == b.bytes && a.header_hash == b.header_hash && a.modified == b.modified;
}

Error changed(const SourceFile& before, const SourceFile& now) {
  Error error = input_error(before.path, "the file changed since its header was read",
                            "another program is writing to it: wait until it has finished, then start over");
  if (now.bytes != before.bytes)
    error.detail = fmt::format("{} bytes long, but {} before", now.bytes, before.bytes);
  else if (is_address(now.path))
    error.detail = "the server reports a different version";
  else if (now.header_hash != before.header_hash)
    error.detail = "its beginning is different";
  else
    error.detail = "it was modified";
  return error;
}

}  // namespace ggufmill
