#pragma once
// Positional file I/O with completion callbacks, on Boost.Asio: io_uring where Boost and the kernel have it, else a thread
// pool of blocking calls. Chosen at run time.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

enum class IoKind { kAuto, kUring, kThreads };

// A regular file opened for reading. Anything else (folder, pipe, device) is refused. Thread-safe.
class InputFile {
 public:
  static Result<std::shared_ptr<const InputFile>> open(const std::string& path);
  ~InputFile();

  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }
  // Blocking; fills all of `into` or fails (kBadInput when the file ends early). Retries EINTR and short reads.
  Status read(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  InputFile(std::string path, std::uint64_t bytes, int descriptor);
  std::string path_;
  std::uint64_t bytes_;
  int descriptor_;
};

// A file that appears under its name whole or not at all (DESIGN 6): a temporary in the target's folder, full size
// reserved, data, fsync, header last, rename, fsync of the folder. Destroyed before seal(): the temporary is removed.
class AtomicFile {
 public:
  struct Options {
    bool overwrite = false;
    std::vector<std::string> inputs;  // paths that must not be the target, however they are spelled
  };
  // Creates missing folders. Exit code 2 for an existing target without `overwrite` and for a target that is an input;
  // 6 when there is no space or permission. `bytes` is the final size.
  static Result<std::unique_ptr<AtomicFile>> create(const std::string& path, std::uint64_t bytes, const Options& options);
  virtual ~AtomicFile() = default;

  virtual const std::string& path() const = 0;
  virtual int descriptor() const = 0;
  // Blocking, thread-safe for disjoint ranges.
  virtual Status write(std::uint64_t offset, std::span<const std::byte> from) = 0;
  // fsync, write `header` at 0, fsync, rename, fsync of the folder. `written` (data bytes, without the header) is checked
  // against what the caller says it has written.
  virtual Status seal(std::span<const std::byte> header) = 0;
};

// Runs reads and writes in the background. Completions are called from the service's own threads and must not block;
// they may start further operations. Destruction waits for all operations.
class IoService {
 public:
  using Completion = std::function<void(Status)>;

  // kUring where it cannot be had: exit code 5, saying why. kAuto never fails for that reason.
  static Result<std::unique_ptr<IoService>> start(IoKind kind);
  virtual ~IoService() = default;

  virtual std::string name() const = 0;  // "io_uring" or "threads"
  // `into` / `from` stay valid until the completion. All of it or an error.
  virtual void read(const InputFile& file, std::uint64_t offset, std::span<std::byte> into, Completion done) = 0;
  virtual void write(AtomicFile& file, std::uint64_t offset, std::span<const std::byte> from, Completion done) = 0;
};

// A budget of bytes. Acquire never blocks. Thread-safe.
class Budget {
 public:
  explicit Budget(std::uint64_t bytes) : bytes_(bytes) {}
  bool try_acquire(std::uint64_t bytes);  // false: not now
  void release(std::uint64_t bytes);
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t in_use() const;
  std::uint64_t peak() const;

 private:
  const std::uint64_t bytes_;
  std::atomic<std::uint64_t> in_use_{0};
  std::atomic<std::uint64_t> peak_{0};
};

// Page-aligned memory, given back to the system when destroyed (so that resident memory follows the budget).
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes);  // contents undefined
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::span<std::byte> span() const { return {data_, bytes_}; }
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace ggufmill
