#pragma once
// Where the outputs of a run go: files of this machine; later also parts of files that many machines write.

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

namespace ggufmill {

class IoService;

// One output file as it was planned. The header outlives the store.
struct StoredFile {
  std::string path;
  std::string_view header;  // at byte 0
  std::uint64_t bytes = 0;  // in all; what is not written stays zero
};

// All files of a run, under temporary names until they are sealed. Destroyed before seal() and leave(): nothing is
// left of them. Writing members are thread-safe for disjoint ranges.
class OutputStore {
 public:
  using Completion = std::function<void(Status)>;
  virtual ~OutputStore() = default;

  virtual Status write(std::size_t file, std::uint64_t offset, std::span<const std::byte> from) = 0;
  // In the background. `from` stays valid until `done` is called: by a thread of the service, never within this call.
  virtual void start_write(IoService& io, std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                           Completion done) = 0;
  // Publishes the files one after the other, in order. `written`: the bytes that the caller means to have written to
  // each through this store, without headers; where other than that arrived, it is a defect (exit code 1). After an
  // error, or a set `stop`, those published before stay and the others are removed; the error says how many there are.
  virtual Status seal(std::span<const std::uint64_t> written, const std::atomic<bool>* stop) = 0;
  // Makes what was written durable and keeps it, still under temporary names, for a later attach().
  virtual Status leave() = 0;
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
  // AtomicFile::create, for the first file in order that failed. What an earlier run of the plan left is written anew.
  static Result<std::unique_ptr<OutputStore>> create(std::vector<StoredFile> files, const Options& options);
  // Goes on with the files that leave() kept. Exit code 6 where one of them is not there, or of another size.
  static Result<std::unique_ptr<OutputStore>> attach(std::vector<StoredFile> files, const Options& options);
};

// What a run that was stopped by the user ends with, when `sealed` of its `files` were published.
Error interrupted(std::size_t sealed, std::size_t files);

}  // namespace ggufmill
