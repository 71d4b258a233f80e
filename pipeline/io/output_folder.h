#pragma once
// The folder of an output file.

#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/descriptor.h"

namespace ggufmill {

// fsync; a file system that cannot (EINVAL) counts as done. -1 and errno otherwise.
int sync_to_disk(int descriptor);

// An open folder, made where it was missing. Destroyed before keep(): the folders that were made for it are removed
// again where they are empty. Movable.
class OutputFolder {
 public:
  // `path` empty: the current folder. Errors (exit code 6) name `path`.
  static Result<OutputFolder> open(const std::string& path);
  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  int descriptor() const { return descriptor_.get(); }
  void keep() { kept_ = true; }
  // Makes the names in it durable.
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
