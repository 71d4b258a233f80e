#pragma once
// The temporary behind an output file.

#include <cstdint>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/io/descriptor.h"

namespace ggufmill {

// An open `.NAME.ggufmill-IDENTITY`, removed when destroyed unless it was published or is kept. Locked while it is
// open, so that no two processes write to it. Movable.
class TemporaryFile {
 public:
  // In the open folder `folder`, which outlives it, for the file `name` there; `target` is its path, for messages.
  // Empty: `identity` gives it a name that nothing else has. `attach`: it is there already, and stays as it is; else
  // what is there is emptied. Exit code 75 where another process has it.
  static Result<TemporaryFile> open(int folder, const std::string& name, const std::string& target,
                                    const std::string& identity, bool attach);
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
  // Whether it has `bytes`, as one that was reserved earlier; exit code 6.
  Status check_size(std::uint64_t bytes) const;
  // It stays where it is when this is destroyed.
  void keep() { temporary_.clear(); }
  // Gives it the name `name`. Without `overwrite`, a file that has that name by now stays (exit code 2).
  Status publish(bool overwrite);

 private:
  TemporaryFile(int folder, std::string name, std::string target)
      : folder_(folder), name_(std::move(name)), target_(std::move(target)) {}
  Status create(const std::string& identity);
  Result<bool> open_existing(std::string temporary);
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
