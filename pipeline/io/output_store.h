#pragma once
// Destination of the outputs of a run: local files, parts of files that many machines write, and whatever else
// store_scheme.h lists.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/io_mode.h"
#include "pipeline/core/spool.h"
#include "pipeline/io/ledger.h"

namespace ggufmill {

class IoService;

// One planned output file. The memory of `header` must outlive the store.
struct StoredFile {
  std::string path;
  std::string_view header;  // at byte 0
  std::uint64_t bytes = 0;  // total; bytes that are not written stay zero
};

// Bytes of a file that a run writes: those of consecutive rows, in their order. Rows are counted over the whole run, so
// that writes of the same rows are made at about the same time.
struct PlannedWrite {
  std::size_t file = 0;
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t row = 0, rows = 0;  // the first row, and how many; the bytes are a multiple of the rows
};

// Reads `into.size()` bytes at `offset` of file `index`; thread-safe for disjoint ranges.
using FileReader = std::function<Status(std::size_t index, std::uint64_t offset, std::span<std::byte> into)>;

// All files of a run, under temporary names until they are published. If destroyed before publish(), keep() or leave(),
// they are all removed. Members that read and write are thread-safe for disjoint ranges.
class OutputStore {
 public:
  using Completion = std::function<void(Status)>;
  virtual ~OutputStore() = default;

  virtual Status write(std::size_t file, std::uint64_t offset, std::span<const std::byte> from) = 0;
  // Writes in the background. `from` must stay valid until `done` is called, which is done by a thread of the service,
  // never from within this call.
  virtual void start_write(IoService& io, std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                           Completion done) = 0;
  // Returns true if read() works before publish(). A store for which it does not vouches for the written bytes itself.
  virtual bool is_readable() const { return true; }
  // For a store that is not readable: returns true if it has all these bytes as an earlier run wrote them. Those of
  // other ranges have to be written again, even if the range contains bytes that the store has.
  virtual bool holds(std::size_t /*file*/, std::uint64_t /*offset*/, std::uint64_t /*bytes*/) const { return false; }
  // Most bytes of StoreOptions::memory that the store uses.
  virtual std::uint64_t memory() const { return 0; }
  // Reads bytes that were written, by this run or by an earlier one. Blocks.
  virtual Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const = 0;
  // Makes all files complete and durable, still under temporary names; returns the identity of each. `written` is the
  // number of bytes the caller believes it has written to each file through this store, without headers; a different
  // number is a defect (exit code 1).
  virtual Result<std::vector<FileId>> seal(std::span<const std::uint64_t> written) = 0;
  // Valid after seal(). Returns true if every file is as this process left it: name, inode, size, and times. The
  // current state becomes the reference for the next call and for publish().
  virtual Result<bool> is_as_left() { return true; }
  // Valid after seal(). All files appear under their names, one right after the other, or none do. If one cannot be
  // renamed, the files before it get their temporary names back; if the file system cannot do that, the error lists the
  // files that stay. Exit code 6 if a file is not as it was left.
  virtual Status publish() = 0;
  // Lets publish() publish the sealed files of `other` as well, in the same step, so that other.publish() has nothing
  // left to do. `other` must outlive publish(). Returns false, and changes nothing, if the store cannot do that.
  virtual bool publish_with(OutputStore& /*other*/) { return false; }
  // Keeps the files under their temporary names.
  virtual void keep() = 0;
  // Makes the written data durable and keeps the files under their temporary names, for a later attach().
  virtual Status leave() = 0;
  // Warnings for the user, one line each.
  virtual std::vector<std::string> warnings() const { return {}; }
  // Findings about writing, for a profile of the run, one line each.
  virtual std::vector<std::string> findings() const { return {}; }
};

struct StoreOptions {
  bool overwrite = false;  // replace existing files
  IoMode mode = IoMode::kCached;
  std::string identity{};  // of the plan: part of the temporary files' names, so that a later attach() finds them
  // Nobody but this user may write to the files, whatever the umask or a replaced file allows: for files that this
  // program will trust later. Only for local files.
  bool only_owner_writes = false;
  unsigned threads = 1;  // speeds up reserving space for many outputs, where that takes time

  // For stores that collect bytes before they send them.
  std::uint64_t memory = 64 << 20;     // most bytes of buffers
  Spool spool{};                       // for what exceeds `memory`
  std::vector<PlannedWrite> writes{};  // by row; empty: the files are written one after another, from the beginning
  std::string records{};  // folder for what a later run has to know; empty: the store's own, on this machine
  const std::atomic<bool>* stop = nullptr;  // cancels requests once set; null: never
};

// Error of a run that the user has interrupted.
Error interrupted();

}  // namespace ggufmill
