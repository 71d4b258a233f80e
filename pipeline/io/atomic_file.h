#pragma once
// Output files.

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

// A file that appears under its name whole or not at all (DESIGN 6): a temporary `.NAME.ggufmill-IDENTITY` in the
// target's folder, full size reserved, data, fsync, header last, rename, fsync of the folder. What is never written
// stays zero. Destroyed before seal(): the temporary, and the folders made for it, are removed; a process that is
// killed (SIGKILL, power) leaves the temporary, which is then for its owner to remove.
class AtomicFile : public WriteTarget {
 public:
  struct Options {
    bool overwrite = false;  // replace an existing file; it keeps its permissions
    IoMode mode = IoMode::kCached;
    // Names the temporary, so that a run of the same identity finds it; empty: a name that nothing else has. What lies
    // there already is written anew, unless another process has it open: exit code 75. What is not this user's alone
    // (own_file.h) stays as it is: then the temporary gets another name, which warning() says.
    std::string identity{};
    // Goes on with the temporary that leave() kept; it has to be there, of the same size, and this user's alone.
    bool attach = false;
  };
  // Creates missing folders. Exit code 2 for an existing target without `overwrite`, for one that is a folder, a
  // symbolic link or not a regular file; 6 when there is no space or permission, or no direct I/O where that
  // is the mode. `bytes` is the final size.
  static Result<std::unique_ptr<AtomicFile>> create(const std::string& path, std::uint64_t bytes,
                                                    const Options& options);

  // Writes are direct where the mode and the memory allow it: where `from` starts at the same place of a memory page as
  // `offset` of a block, and then but for the ragged ends, which begin_write() writes.

  // What was written, or is there since an earlier run.
  virtual Status read(std::uint64_t offset, std::span<std::byte> into) const = 0;

  // Once, after all writes, the three steps to a file under its name. finish(): fsync, write `header` at 0, fsync.
  // `data_bytes` is what the caller means to have written (without the header); where other than that arrived, that is
  // a defect (exit code 1). publish(): rename. settle(): what was replaced is gone, fsync of the folder.
  Status seal(std::span<const std::byte> header, std::uint64_t data_bytes) {
    BOOST_OUTCOME_TRY(finish(header, data_bytes));
    BOOST_OUTCOME_TRY(publish(false));
    return settle();
  }
  virtual Status finish(std::span<const std::byte> header, std::uint64_t data_bytes) = 0;
  virtual Status publish(bool revocable) = 0;
  virtual Status settle() = 0;
  // Between a revocable publish() and settle(): everything as before, where the file system can do that.
  virtual Status take_back() = 0;

  // Keeps the temporary under its name. leave() also makes what was written durable.
  virtual void keep() = 0;
  virtual Status leave() = 0;
  virtual Result<FileId> id() const = 0;
  // After finish(), as OutputStore::is_as_left(); publish() refuses a file that is not.
  virtual Result<bool> is_as_left() = 0;
  // For the user; empty: none.
  virtual const std::string& warning() const = 0;

  virtual std::uint64_t written() const = 0;
};

}  // namespace ggufmill
