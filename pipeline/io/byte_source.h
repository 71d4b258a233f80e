#pragma once
// Where bytes are read from: a file (input_file.h), or an object on a server (pipeline/remote).

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
inline constexpr const char* kDamagedFileHelp = "the file is damaged or cut short: copy or download it again";

class IoService;

// Random access to something that does not change while it is read. Thread-safe.
class ByteSource {
 public:
  using Completion = std::function<void(Status)>;

  // What `described` names, to be read by a run. Exit code 4 where it is not what it was when it was described, and for
  // what is missing or not a regular file; 6 for what the system refuses, which direct I/O may be. Once `*stop` is set
  // (null: never) reads that wait for a server end with kInterrupted; it outlives the source.
  static Result<std::shared_ptr<const ByteSource>> open(const SourceFile& described, IoMode mode,
                                                        const std::atomic<bool>* stop = nullptr);
  virtual ~ByteSource() = default;

  // What it was when it was opened.
  virtual const SourceRef& describe() const = 0;
  const std::string& path() const { return describe()->path; }
  std::uint64_t bytes() const { return describe()->bytes; }
  // Whether it is still the same: exit code 4 where something has written to it since.
  virtual Status check_unchanged() const = 0;
  // How many bytes to read at once: enough that what each read costs does not count.
  virtual std::size_t request_bytes() const = 0;

  // Blocking; fills all of `into` or fails (exit code 4 where the source ends early).
  virtual Status read(std::uint64_t offset, std::span<std::byte> into) const = 0;
  // The same without ever waiting. False where not all of it is in memory, where that is not known, and where read()
  // has an error to give; `into` then holds anything.
  virtual bool read_if_cached(std::uint64_t offset, std::span<std::byte> into) const = 0;
  // In the background. `into` stays valid until `done` is called: by a thread of the service, never within this call.
  virtual void start_read(IoService& io, std::uint64_t offset, std::span<std::byte> into, Completion done) const = 0;
};

// Whether two descriptions are of the same bytes, wherever they lie.
bool is_same(const SourceFile& a, const SourceFile& b);
// That the bytes of `before` are those of `now` by now. Exit code 4.
Error changed(const SourceFile& before, const SourceFile& now);

}  // namespace ggufmill
