#pragma once
// A folder with files as in /proc and /sys, which takes the place of the root folder in a test.

#include <filesystem>
#include <string>
#include <string_view>

#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {

class RootFolder {
 public:
  // `path` begins with a slash.
  void put(const std::string& path, std::string_view text) {
    const std::filesystem::path file = this->path() + path;
    std::filesystem::create_directories(file.parent_path());
    write_text(file.string(), text);
  }
  std::string path() const { return folder_.path().string(); }

 private:
  TempDir folder_;
};

}  // namespace ggufmill
