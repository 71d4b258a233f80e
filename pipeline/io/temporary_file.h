#pragma once
// The temporary file behind an output file.

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/io/ledger.h"
#include "pipeline/io/platform/files.h"

namespace ggufmill {

// Returns `FOLDER/.NAME.ggufmill-IDENTITY` for the output FOLDER/NAME; a long NAME is truncated and a hash is appended.
std::string temporary_path(const std::string& target, const std::string& identity);
inline constexpr std::string_view kTemporaryMark = ".ggufmill-";
inline constexpr std::string_view kJournalEnd = ".journal";  // ending of the identity in the name of a journal
// Error (exit code 75): another process has the temporary file of the output open.
Error being_written(const std::string& target);

// An open `.NAME.ggufmill-IDENTITY`, removed by the destructor unless it was published or is kept. It is locked while
// it is open, so that no two processes write to it. Nobody else may write to it until it has its final name. Movable.
class TemporaryFile {
 public:
  // Opens the temporary file of `name` in the open folder `folder`, which must outlive it; `target` is the path of the
  // output, for messages. If `identity` is empty, the file gets a unique name. If `attach` is set, the file must exist
  // and is not modified; otherwise an existing file is truncated. An existing file that is not owned exclusively by
  // this user (own_file.h) is left untouched: attaching to it fails (exit code 6); otherwise the new file gets a unique
  // name, and warning() reports it. Exit code 75 if another process has it open.
  static Result<TemporaryFile> open(int folder, const std::string& name, const std::string& target,
                                    const std::string& identity, bool attach);
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  int descriptor() const { return descriptor_.get(); }
  // Warning for the user; empty if there is none.
  const std::string& warning() const { return warning_; }
  // -1 until open_direct() succeeds, which fails (exit code 6) if the file system does not support direct I/O.
  int direct_descriptor() const { return direct_.get(); }
  Status open_direct();
  // Allocates `bytes` on the disk, so that a full disk is detected now. If the file system cannot allocate, compares
  // `bytes` with the free space. Exit code 6.
  Status reserve(std::uint64_t bytes);
  // The same, but on a file system that reserves slowly, it only compares `bytes` with the free space. The file then
  // has its size, and reserve_more() has to be called until it returns true: all is reserved, or end_reserving(), if
  // all is written.
  Status begin_reserving(std::uint64_t bytes);
  Result<bool> reserve_more();
  Status end_reserving();
  Result<std::uint64_t> bytes() const;
  // Identity of the file, independent of its name.
  Result<FileId> id() const;
  // The destructor will not remove the file.
  void keep() { temporary_.clear(); }
  // Returns true if the file is unchanged since the last call and still has its temporary name; the first call returns
  // true. Exit code 6 if something else has taken the name.
  Result<bool> is_as_left();
  // Returns true if the file has at least as many blocks as were reserved, or if that number is unknown. A file that
  // was truncated and grew again with later writes has fewer; so may a file on a file system that compresses.
  Result<bool> has_its_blocks() const;
  // Gives the file these permissions; write permission for others is withheld until the file is published. By default
  // it gets the permissions of a new file.
  Status set_mode(unsigned mode);
  // Renames the file to `name`. Without `overwrite`, an existing file of that name is kept (exit code 2). With
  // `overwrite`, it is replaced; if `revocable` is set and the file system can exchange two names, it is kept under the
  // temporary name. Exit code 6 if the file has changed since the last is_as_left().
  Status publish(bool overwrite, bool revocable);
  // After publish(): restores the previous state, if possible.
  Status take_back();
  // After publish(): makes it final. Removes the replaced file and sets the file's permissions.
  Status settle();

 private:
  TemporaryFile(int folder, std::string name, std::string target)
      : folder_(folder), name_(std::move(name)), target_(std::move(target)) {}
  // Properties by which a file is compared.
  struct State {
    FileId id;
    std::uint64_t bytes = 0;
    std::int64_t modified = 0, changed = 0;
    bool operator==(const State&) const = default;
  };
  Status create(const std::string& identity);
  Result<bool> open_existing(std::string temporary);
  Status note_reserved();
  static State state_of(const FileStatus& info);
  enum class Published { kNot, kNew, kExchanged, kForGood };
  int rename(Rename how, Published then);  // 0 or errno
  int link();
  int rename_unless_exists();
  void remove();
  Error failed(const char* action, int errno_value) const;

  int folder_;
  std::string name_, target_;
  std::string temporary_;  // empty: nothing to remove
  std::string strange_;    // why the existing file is not owned exclusively by this user
  std::string warning_;
  std::optional<unsigned> mode_;
  std::optional<State> left_;
  std::uint64_t reserved_ = 0;                      // blocks; 0: unknown
  std::uint64_t to_reserve_ = 0, reserved_to_ = 0;  // bytes of the file, and up to which they are reserved; 0: all
  Published published_ = Published::kNot;
  Descriptor descriptor_, direct_;
};

}  // namespace ggufmill
