#pragma once
// Where the outputs of a run go: files of this machine; later also parts of files that many machines write.

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
#include "pipeline/io/ledger.h"

namespace ggufmill {

class IoService;

// One output file as it was planned. The header outlives the store.
struct StoredFile {
  std::string path;
  std::string_view header;  // at byte 0
  std::uint64_t bytes = 0;  // in all; what is not written stays zero
};

// Reads `into.size()` bytes at `offset` of file `index`; thread-safe for distinct ranges.
using FileReader = std::function<Status(std::size_t index, std::uint64_t offset, std::span<std::byte> into)>;

// All files of a run, under temporary names until they are published. Destroyed before publish(), keep() and leave():
// nothing is left of them. Reading and writing members are thread-safe for disjoint ranges.
class OutputStore {
 public:
  using Completion = std::function<void(Status)>;
  virtual ~OutputStore() = default;

  virtual Status write(std::size_t file, std::uint64_t offset, std::span<const std::byte> from) = 0;
  // In the background. `from` stays valid until `done` is called: by a thread of the service, never within this call.
  virtual void start_write(IoService& io, std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                           Completion done) = 0;
  // What was written, or is there since an earlier run. Blocking.
  virtual Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const = 0;
  // Makes all files whole and durable, still under temporary names; what each is known by. `written`: the bytes that
  // the caller means to have written to each through this store, without headers; where other than that arrived, it is
  // a defect (exit code 1).
  virtual Result<std::vector<FileId>> seal(std::span<const std::uint64_t> written) = 0;
  // After seal(): whether every file is as this process left it: name, inode, size, and times. From now on the files
  // are compared with what they are now, by the next call and by publish().
  virtual Result<bool> is_as_left() { return true; }
  // After seal(): all files appear under their names, one right after the other, or none. Where one cannot, the names
  // of those before it are taken back; where the file system cannot do that, the error says which stay. Exit code 6
  // for files that are not as they were left.
  virtual Status publish() = 0;
  // Keeps the files under their temporary names.
  virtual void keep() = 0;
  // Makes what was written durable and keeps it, still under temporary names, for a later attach().
  virtual Status leave() = 0;
  // For the user, a line each.
  virtual std::vector<std::string> warnings() const { return {}; }
};

// Files of this machine: AtomicFile says how each is made.
class LocalStore {
 public:
  struct Options {
    bool overwrite = false;  // replace existing files
    IoMode mode = IoMode::kCached;
    std::string identity;  // of the plan: names the temporary files, so that a later attach() finds them
    unsigned threads = 1;  // where reserving takes time, many outputs take no more of it than few
  };
  // Full size reserved. Exit code 75 where another run of the same plan is writing them now; else as
  // AtomicFile::create, for the first file in order that failed. What an earlier run of the plan left is written anew,
  // where it is this user's alone; else the file gets another temporary name, and warnings() says so.
  static Result<std::unique_ptr<OutputStore>> create(std::vector<StoredFile> files, const Options& options);
  // Goes on with the files that leave() kept. Exit code 6 where one of them is missing, of another size, or not this
  // user's alone.
  static Result<std::unique_ptr<OutputStore>> attach(std::vector<StoredFile> files, const Options& options);
  // What publish() had left to do of sealed files when it was killed: those that are still under their temporary names
  // get their own, and what was replaced is removed. `ids`: as seal() gave them.
  static Status finish_publishing(std::span<const StoredFile> files, std::span<const FileId> ids,
                                  const Options& options);
};

// What a run that was stopped by the user ends with.
Error interrupted();

}  // namespace ggufmill
