#pragma once
// The file behind the journal of a run.

#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"
#include "pipeline/io/platform/files.h"

namespace ggufmill {

// A file of this machine that one process at a time writes. Errors (exit code 6) contain its path.
class JournalFile {
 public:
  explicit JournalFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  bool is_open() const { return static_cast<bool>(file_); }

  struct Found {
    std::string strange;     // why the file is not owned exclusively by this user (own_file.h), so that it stays closed
    bool is_in_use = false;  // another process has it open, so that it stays closed
  };
  // Opens and locks the file if it exists.
  Result<Found> open_existing();
  // Creates and locks the file unless it is open, and empties it. Returns false if another process was faster.
  Result<bool> create();
  // Returns the beginning of the file, at most `most` bytes.
  Result<std::string> read(std::uint64_t most) const;
  Status write(std::uint64_t offset, std::string_view bytes) const;
  Status truncate(std::uint64_t bytes) const;
  Status sync() const;
  // Makes the name of the file durable.
  Status sync_folder() const;
  // Returns true if the open file still has its name: somebody may have removed its folder.
  bool is_there() const;
  // Removes and closes the file, if it is open.
  void remove();

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace ggufmill
