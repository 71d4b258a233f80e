#pragma once
// The temporary behind an output file.

#include <cstdint>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/io/descriptor.h"

namespace ggufmill {

// An open `.NAME.ggufmill-XXXXXX`, removed when destroyed unless it was published. Movable.
class TemporaryFile {
 public:
  // In the open folder `folder`, which outlives it, for the file `name` there; `target` is its path, for messages.
  static Result<TemporaryFile> create(int folder, const std::string& name, const std::string& target);
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  int descriptor() const { return descriptor_.get(); }
  // -1 until open_direct(), which is refused (exit code 6) where the file system has no direct I/O.
  int direct_descriptor() const { return direct_.get(); }
  Status open_direct();
  // Allocates `bytes` on the disk, so that a full one is known now. Where the file system cannot: compares with what is
  // free. Exit code 6.
  Status reserve(std::uint64_t bytes);
  // Gives it the name `name`. Without `overwrite`, a file that has that name by now stays (exit code 2).
  Status publish(bool overwrite);

 private:
  TemporaryFile(int folder, std::string name, std::string target)
      : folder_(folder), name_(std::move(name)), target_(std::move(target)) {}
  int rename(unsigned flags);  // 0 or errno
  int link();
  int rename_unless_exists();
  Error failed(const char* action, int errno_value) const;

  int folder_;
  std::string name_, target_;
  std::string temporary_;  // empty: nothing to remove
  Descriptor descriptor_, direct_;
};

}  // namespace ggufmill
