#pragma once
// Records which units of a plan are done.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pipeline/core/error.h"

namespace ggufmill {

class OutputStore;

// Identity of a file, independent of its name.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  bool operator==(const FileId&) const = default;
};

// begin() is called first; is_done() after it and before all others; done() from one thread at a time.
class Ledger {
 public:
  virtual ~Ledger() = default;
  // Called when the outputs are open.
  virtual Status begin(const OutputStore&, unsigned /*threads*/, const std::atomic<bool>* /*stop*/) { return ok(); }
  // Returns true if all bytes of the unit are already in the outputs.
  virtual bool is_done(std::size_t unit) const = 0;
  // Returns true if done() needs checksums.
  virtual bool wants_checksums() const { return false; }
  // All bytes of the unit were written, though possibly not yet to the disk. `checksums` has one for each encoding of
  // its step, as computed by checksum() of plan/slabs.h; empty if they are not wanted.
  virtual Status done(std::size_t unit, std::span<const std::uint64_t> checksums) = 0;
  // All outputs are complete and durable under their temporary names, and are about to be renamed. The argument has the
  // identity of each file, in order.
  virtual Status sealed(std::span<const FileId>) { return ok(); }
  // Returns true if the outputs of a run that fails with the given error stay under their temporary names, so that a
  // later run can resume.
  virtual bool keeps(const Error&) { return false; }
};

// Records nothing: every run processes all units.
class NoLedger final : public Ledger {
 public:
  bool is_done(std::size_t) const override { return false; }
  Status done(std::size_t, std::span<const std::uint64_t>) override { return ok(); }
};

}  // namespace ggufmill
