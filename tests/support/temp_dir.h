#pragma once
// A folder of its own for a test, removed at the end.

#include <filesystem>
#include <string>
#include <string_view>

namespace ggufmill {

// Throws std::system_error when no folder can be made.
class TempDir {
 public:
  explicit TempDir(const std::filesystem::path& in = std::filesystem::temp_directory_path());
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  // The path of `name` in it.
  std::string file(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace ggufmill
