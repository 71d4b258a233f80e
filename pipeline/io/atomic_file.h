#pragma once
// Output files that appear atomically.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/core/io_mode.h"
#include "pipeline/io/ledger.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {

// A file that appears under its name complete or not at all (DESIGN 6). It is written to a temporary file
// `.NAME.ggufmill-IDENTITY` in the target's folder: reserve the full size, write the data, fsync, write the header
// last, rename, fsync the folder. Bytes that are never written stay zero. If the object is destroyed before seal(), the
// temporary file and the folders created for it are removed. If the process is killed (SIGKILL, power loss), the
// temporary file stays, and its owner has to remove it.
class AtomicFile : public WriteTarget {
 public:
  struct Options {
    bool overwrite = false;  // replace an existing file; its permissions are kept
    IoMode mode = IoMode::kCached;
    // Part of the temporary file's name, so that a run with the same identity finds the file; if empty, a unique name
    // is chosen. An existing file of that name is overwritten, unless another process has it open (exit code 75) or it
    // is not owned exclusively by this user (own_file.h): such a file is left untouched, another name is used for the
    // temporary file, and warning() reports it.
    std::string identity{};
    // Resumes with the temporary file that leave() kept; it must exist, have the same size, and be owned exclusively by
    // this user.
    bool attach = false;
    bool only_owner_writes = false;  // as StoreOptions::only_owner_writes
    // Leaves what takes long to reserve (tmpfs) to reserve_more(), so that it can be done beside other work.
    bool reserve_later = false;
  };
  // Opens the temporary file for `path`; creates missing folders. `bytes` is the final size. Exit code 2 if the target
  // exists and `overwrite` is not set, or if it is a folder, a symbolic link or not a regular file; 6 if there is no
  // space or no permission, or if `mode` is direct I/O and the file system does not support it.
  static Result<std::unique_ptr<AtomicFile>> create(const std::string& path, std::uint64_t bytes,
                                                    const Options& options);

  // Writes use direct I/O if the mode and the memory allow it: the address of `from` must have the same offset within a
  // memory page as `offset` has within a block. The unaligned head and tail are written through the page cache by
  // begin_write().

  // Reserves some more of the space of a file that was created with `reserve_later`. Returns true once all is reserved,
  // which is not needed once all is written. May be called beside writes, by one thread at a time. An error, such as
  // that of a full disk, is also that of all writes after it, of finish() and of leave().
  virtual Result<bool> reserve_more() = 0;

  // Reads bytes that were written, by this run or by an earlier one.
  virtual Status read(std::uint64_t offset, std::span<std::byte> into) const = 0;

  // Turns the temporary file into the finished file. Called once, after all writes; consists of three steps:
  // finish(): fsync, write `header` at offset 0, fsync. `data_bytes` is the number of bytes the caller believes it has
  // written (without the header); a different number is a defect (exit code 1).
  // publish(): rename.
  // settle(): remove the replaced file, fsync the folder.
  Status seal(std::span<const std::byte> header, std::uint64_t data_bytes) {
    BOOST_OUTCOME_TRY(finish(header, data_bytes));
    BOOST_OUTCOME_TRY(publish(false));
    return settle();
  }
  virtual Status finish(std::span<const std::byte> header, std::uint64_t data_bytes) = 0;
  virtual Status publish(bool revocable) = 0;
  virtual Status settle() = 0;
  // Restores the previous state, if the file system can; valid between a revocable publish() and settle().
  virtual Status take_back() = 0;

  // keep() keeps the temporary file under its temporary name; leave() also makes the written data durable.
  virtual void keep() = 0;
  virtual Status leave() = 0;
  virtual Result<FileId> id() const = 0;
  // Valid after finish(); same meaning as OutputStore::is_as_left(). publish() refuses a file for which this is false.
  virtual Result<bool> is_as_left() = 0;
  // Warning for the user; empty if there is none.
  virtual const std::string& warning() const = 0;

  virtual std::uint64_t written() const = 0;
};

}  // namespace ggufmill
