#pragma once
// The folder of an output file.

#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/platform/files.h"

namespace ggufmill {

// SystemCalls::sync(); counts as success if the file system does not support it. Otherwise returns -1 and sets errno on
// failure.
int sync_to_disk(int descriptor);

// An open folder, created if it was missing. If destroyed before keep(), the folders created for it are removed again
// if they are empty. Movable.
class OutputFolder {
 public:
  // An empty `path` is the current folder. Errors (exit code 6) contain `path`.
  static Result<OutputFolder> open(const std::string& path);
  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  int descriptor() const { return descriptor_.get(); }
  void keep() { kept_ = true; }
  // Makes the directory entries in the folder durable.
  Status sync() const;

 private:
  explicit OutputFolder(std::string path) : path_(std::move(path)) {}
  Status make(const std::string& path);

  std::string path_;
  Descriptor descriptor_;
  std::vector<std::string> made_;  // outermost first
  bool kept_ = false;
};

}  // namespace ggufmill
