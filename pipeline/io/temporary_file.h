#pragma once
// The temporary behind an output file.

#include <sys/stat.h>

#include <cstdint>
#include <optional>
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
// open, so that no two processes write to it. Nobody else may write to it until it has its name. Movable.
class TemporaryFile {
 public:
  // In the open folder `folder`, which outlives it, for the file `name` there; `target` is its path, for messages.
  // Empty: `identity` gives it a name that nothing else has. `attach`: it is there already, and stays as it is; else
  // what is there is emptied. What is there and is not this user's alone (own_file.h) stays as it is: attaching to it
  // is refused (exit code 6), and else the file gets a name that nothing else has, and warning() says so. Exit code 75
  // where another process has it.
  static Result<TemporaryFile> open(int folder, const std::string& name, const std::string& target,
                                    const std::string& identity, bool attach);
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  int descriptor() const { return descriptor_.get(); }
  // For the user; empty: none.
  const std::string& warning() const { return warning_; }
  // -1 until open_direct(), which is refused (exit code 6) where the file system has no direct I/O.
  int direct_descriptor() const { return direct_.get(); }
  Status open_direct();
  // Allocates `bytes` on the disk, so that a full one is known now. Where the file system cannot: compares with what is
  // free. Exit code 6.
  Status reserve(std::uint64_t bytes);
  Result<std::uint64_t> bytes() const;
  // What it is known by, whatever its name.
  Result<FileId> id() const;
  // It stays where it is when this is destroyed.
  void keep() { temporary_.clear(); }
  // Whether it is as it was at the last call, and under its name; of the first call, true. Exit code 6.
  Result<bool> is_as_left();
  // Whether it has as many blocks as were reserved, as far as that is known. One that was cut short, and grew again
  // with what was written later, has fewer; so may one on a file system that compresses.
  Result<bool> has_its_blocks() const;
  // Gives it these permissions, but for those of others to write, which it gets with its name. Else it gets those of a
  // new file.
  Status set_mode(mode_t mode);
  // Gives it the name `name`. Without `overwrite`, a file that has that name by now stays (exit code 2). With it, that
  // file is gone; if `revocable`, it waits under the temporary's name where the file system can exchange two names.
  // Exit code 6 where it is not as it was at the last is_as_left().
  Status publish(bool overwrite, bool revocable);
  // After publish(): as it was before, where that is possible.
  Status take_back();
  // After publish(): for good. What was replaced is removed, and the file gets its permissions.
  Status settle();

 private:
  TemporaryFile(int folder, std::string name, std::string target)
      : folder_(folder), name_(std::move(name)), target_(std::move(target)) {}
  // What a file is compared by.
  struct State {
    FileId id;
    std::int64_t bytes = 0, modified = 0, changed = 0;
    bool operator==(const State&) const = default;
  };
  Status create(const std::string& identity);
  Result<bool> open_existing(std::string temporary);
  Status note_reserved();
  static State state_of(const struct stat& info);
  mode_t mode_of_new_file() const;
  enum class Published { kNot, kNew, kExchanged, kForGood };
  int rename(unsigned flags, Published then);  // 0 or errno
  int link();
  int rename_unless_exists();
  void remove();
  Error failed(const char* action, int errno_value) const;

  int folder_;
  std::string name_, target_;
  std::string temporary_;  // empty: nothing to remove
  std::string strange_;    // why what is under the temporary's name is not this user's alone
  std::string warning_;
  std::optional<mode_t> mode_;
  std::optional<State> left_;
  std::int64_t reserved_ = 0;  // blocks; 0: unknown
  Published published_ = Published::kNot;
  Descriptor descriptor_, direct_;
};

}  // namespace ggufmill
