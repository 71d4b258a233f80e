#pragma once
// Positional file I/O with completion callbacks, on Boost.Asio: io_uring where Boost and the kernel have it, else a
// thread pool of blocking calls. Chosen at run time, because containers often forbid io_uring.

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

// Runs reads and writes in the background. Completions are called from the service's own threads (never from within
// read() or write()), must neither block nor throw, and may start further operations. Thread-safe. Destruction waits
// for all operations and must not happen in a completion.
class IoService {
 public:
  using Completion = std::function<void(Status)>;

  // kUring where it cannot be had: exit code 5, saying why. kAuto never fails for that reason.
  static Result<std::unique_ptr<IoService>> start(IoKind kind);
  virtual ~IoService() = default;

  virtual std::string name() const = 0;  // "io_uring" or "threads"
  // The file and `into` / `from` stay valid until the completion. All of it or an error, the same as of the blocking
  // calls. Where this throws (no memory) nothing has begun, and the completion is not called.
  virtual void read(const InputFile& file, std::uint64_t offset, std::span<std::byte> into, Completion done) = 0;
  virtual void write(WriteTarget& file, std::uint64_t offset, std::span<const std::byte> from, Completion done) = 0;
  // Work that waits long for something else than a disk, such as a server: on threads that do nothing else, so many at
  // once as a server is to be asked for at once.
  virtual void wait_for(std::function<Status()> work, Completion done) = 0;
};

// What the exception that is being handled comes to: 75 where memory or threads lack, else a defect. For a catch
// clause. Never throws: where there is no memory for more it says that alone.
Error error_of_exception() noexcept;

}  // namespace ggufmill
