#pragma once
// Which units of a plan are done.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pipeline/core/error.h"

namespace ggufmill {

class OutputStore;

// What a file is known by, whatever its name.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  bool operator==(const FileId&) const = default;
};

// begin() is called first, is_done() after it and before all others; done() from one thread at a time.
class Ledger {
 public:
  virtual ~Ledger() = default;
  // The outputs are open.
  virtual Status begin(const OutputStore&, unsigned /*threads*/, const std::atomic<bool>* /*stop*/) { return ok(); }
  // Whether all bytes of the unit are in the outputs already.
  virtual bool is_done(std::size_t unit) const = 0;
  // Whether done() is to be given checksums.
  virtual bool wants_checksums() const { return false; }
  // All bytes of the unit were written, though maybe not yet to the disk. `checksums`: one for each encoding of its
  // step, as checksum() of plan/slabs.h makes them; none where they are not wanted.
  virtual Status done(std::size_t unit, std::span<const std::uint64_t> checksums) = 0;
  // All outputs are whole and durable under their temporary names, and are about to get their own; of each file in
  // order what it is known by.
  virtual Status sealed(std::span<const FileId>) { return ok(); }
  // Whether the outputs of a run that ends with `error` stay under their temporary names, for a later one to go on
  // with.
  virtual bool keeps(const Error&) { return false; }
};

// Remembers nothing: every run does all.
class NoLedger final : public Ledger {
 public:
  bool is_done(std::size_t) const override { return false; }
  Status done(std::size_t, std::span<const std::uint64_t>) override { return ok(); }
};

}  // namespace ggufmill
