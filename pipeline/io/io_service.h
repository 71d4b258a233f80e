#pragma once
// Positional file I/O with completion callbacks, based on Boost.Asio. Uses io_uring if Boost and the kernel support it,
// else a thread pool with blocking calls. The choice is made at run time, because containers often forbid io_uring.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/io/atomic_file.h"
#include "pipeline/io/input_file.h"

namespace ggufmill {

enum class IoKind { kAuto, kUring, kThreads };

// Runs reads and writes in the background. Completions are called by the service's own threads, never from within
// read() or write(). They must neither block nor throw, and may start further operations. Thread-safe. The destructor
// waits for all operations and must not be called from a completion.
class IoService {
 public:
  using Completion = std::function<void(Status)>;

  // Exit code 5, with the reason, if `kind` is kUring and io_uring is not available. kAuto never fails for that reason.
  static Result<std::unique_ptr<IoService>> start(IoKind kind);
  virtual ~IoService() = default;

  virtual std::string name() const = 0;  // "io_uring" or "threads"
  // Read or write all bytes, or fail with the same errors as the blocking calls. The file and `into` / `from` must stay
  // valid until the completion. If a call throws (out of memory), nothing has been started and the completion is not
  // called.
  virtual void read(const InputFile& file, std::uint64_t offset, std::span<std::byte> into, Completion done) = 0;
  virtual void write(WriteTarget& file, std::uint64_t offset, std::span<const std::byte> from, Completion done) = 0;
  // Runs work that spends a long time waiting for something other than a disk, such as a server. It runs on dedicated
  // threads; their number limits how many requests a server gets at a time.
  virtual void wait_for(std::function<Status()> work, Completion done) = 0;
};

// Converts the exception being handled to an error: 75 if memory or threads have run out, else a defect. Must be called
// in a catch clause. Never throws; if there is not enough memory for the full message, it reports only that.
Error error_of_exception() noexcept;

}  // namespace ggufmill
