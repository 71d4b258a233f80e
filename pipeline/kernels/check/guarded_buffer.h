#pragma once
// Memory with an inaccessible page on either side: the processor stops a kernel that reads or writes out of bounds, in
// every build.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/io/platform/guard_pages.h"

namespace ggufmill {

class GuardedBuffer {
 public:
  // The guard page that the bytes are adjacent to. At the end, the alignment of their address is that of their size.
  enum class Side { kFront, kEnd };

  // Allocates `size` bytes, at least 1, all 0xa5, at a distance of `gap` bytes (less than a page) from the guard page.
  // `label` names the memory in describe_access(); it must outlive the buffer. Throws std::system_error.
  GuardedBuffer(std::size_t size, Side side, std::size_t gap = 0, const char* label = "buffer");
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  std::span<std::byte> bytes() { return bytes_; }
  // Sets every byte to `value`.
  void fill(std::byte value);
  void copy_from(std::span<const std::byte> source);
  // Makes the bytes, and those up to the guard pages, unwritable.
  void protect();

 private:
  friend class AccessReport;

  std::byte* first_;  // of the pages between the guard pages
  std::size_t mapped_;
  std::span<std::byte> bytes_;
  const char* label_;
  GuardedBuffer* next_;  // of those of this thread that exist
};

// Describes accesses that the processor stops: the memory, how far outside of it, and whether it was written to. The
// description is in memory that is shared with processes that are forked later.
class AccessReport {
 public:
  // Throws std::system_error.
  AccessReport();
  ~AccessReport();
  AccessReport(const AccessReport&) = delete;
  AccessReport& operator=(const AccessReport&) = delete;

  // From now on, an access that the processor stops in this process is described.
  void watch();
  // Sets what the watched process is doing: "3 rows of 64 columns". Cut to 127 bytes.
  static void set_call(std::string_view text);
  // Returns text such as "reads byte 0 after the end of the source", or an empty string if no access was stopped.
  std::string text() const;
  // Returns the last text of set_call() in the watched process.
  std::string call() const;

 private:
  struct Shared;
  static void on_stopped(const void* address, Access access);
  Shared* shared_;
};

}  // namespace ggufmill
