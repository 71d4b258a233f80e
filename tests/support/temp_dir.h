#pragma once
// A temporary folder for a test, removed at the end.

#include <string>
#include <string_view>

#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {

// Throws std::system_error if the folder cannot be created.
class TempDir {
 public:
  explicit TempDir(const fs::path& in = fs::temp_directory_path());
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const fs::path& path() const { return path_; }
  // Returns the path of `name` in the folder.
  std::string file(std::string_view name) const { return path_ / name; }

 private:
  fs::path path_;
};

}  // namespace ggufmill
