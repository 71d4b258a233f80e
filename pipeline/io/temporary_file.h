#pragma once
// The temporary behind an output file.

#include <cstdint>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/io/descriptor.h"
#include "pipeline/io/ledger.h"

namespace ggufmill {

// `FOLDER/.NAME.ggufmill-IDENTITY` for the output FOLDER/NAME; of a long NAME as much as fits, and a hash.
std::string temporary_path(const std::string& target, const std::string& identity);
inline constexpr std::string_view kTemporaryMark = ".ggufmill-";
// Exit code 75: another process has the temporary of the output open.
Error being_written(const std::string& target);

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
  // What it is known by, whatever its name.
  Result<FileId> id() const;
  // It stays where it is when this is destroyed.
  void keep() { temporary_.clear(); }
  // Gives it the name `name`. Without `overwrite`, a file that has that name by now stays (exit code 2). With it, that
  // file is gone; if `revocable`, it waits under the temporary's name where the file system can exchange two names.
  Status publish(bool overwrite, bool revocable);
  // After publish(): as it was before, where that is possible.
  Status take_back();
  // After publish(): for good. What was replaced is removed.
  void settle();

 private:
  TemporaryFile(int folder, std::string name, std::string target)
      : folder_(folder), name_(std::move(name)), target_(std::move(target)) {}
  Status create(const std::string& identity);
  Result<bool> open_existing(std::string temporary);
  enum class Published { kNot, kNew, kExchanged, kForGood };
  int rename(unsigned flags, Published then);  // 0 or errno
  int link();
  int rename_unless_exists();
  void remove();
  Error failed(const char* action, int errno_value) const;

  int folder_;
  std::string name_, target_;
  std::string temporary_;  // empty: nothing to remove
  Published published_ = Published::kNot;
  Descriptor descriptor_, direct_;
};

}  // namespace ggufmill
