#pragma once
// Sources of bytes: a file (input_file.h), or an object on a server (remote/).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "pipeline/core/error.h"
#include "pipeline/core/expression.h"
#include "pipeline/core/io_mode.h"

namespace ggufmill {

// Help for a file that ends too early or contradicts itself.
inline constexpr const char* kDamagedFileHelp = "the file is damaged or truncated: copy or download it again";

class IoService;

// Random access to an object that does not change while it is read. Thread-safe.
class ByteSource {
 public:
  using Completion = std::function<void(Status)>;

  // Opens `described` for reading by a run. Exit code 4 if the object has changed since it was described, is missing,
  // or is not a regular file; 6 if the system refuses to open it, for example with direct I/O. Once `*stop` is set
  // (null: never), reads that wait for a server fail with kInterrupted; `stop` must outlive the source.
  static Result<std::shared_ptr<const ByteSource>> open(const SourceFile& described, IoMode mode,
                                                        const std::atomic<bool>* stop = nullptr);
  virtual ~ByteSource() = default;

  // Describes the object as it was when it was opened.
  virtual const SourceRef& describe() const = 0;
  const std::string& path() const { return describe()->path; }
  std::uint64_t bytes() const { return describe()->bytes; }
  // Checks that the object is still the same; exit code 4 if it was written to since.
  virtual Status check_unchanged() const = 0;
  // Number of bytes to request at a time, large enough to make the cost per request negligible.
  virtual std::size_t request_bytes() const = 0;

  // Blocks; fills all of `into` or fails (exit code 4 if the source ends early).
  virtual Status read(std::uint64_t offset, std::span<std::byte> into) const = 0;
  // Like read(), but never waits. Returns false if the bytes are not all in memory, if that is unknown, or if read()
  // would report an error; the contents of `into` are then undefined.
  virtual bool read_if_cached(std::uint64_t offset, std::span<std::byte> into) const = 0;
  // Reads in the background. `into` must stay valid until `done` is called, which is done by a thread of the service,
  // never from within this call.
  virtual void start_read(IoService& io, std::uint64_t offset, std::span<std::byte> into, Completion done) const = 0;
};

// Returns true if both descriptions are of the same bytes, regardless of their location.
bool is_same(const SourceFile& a, const SourceFile& b);
// Error (exit code 4): the object described by `before` has changed and is now `now`.
Error changed(const SourceFile& before, const SourceFile& now);

}  // namespace ggufmill
