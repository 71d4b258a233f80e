#pragma once
// Which units of a plan are done.

#include <cstddef>

#include "pipeline/core/error.h"

namespace ggufmill {

// done() is called from one thread at a time, is_done() before all of them.
class Ledger {
 public:
  virtual ~Ledger() = default;
  // Whether all bytes of the unit are in the outputs already.
  virtual bool is_done(std::size_t unit) const = 0;
  // All bytes of the unit were written, though maybe not yet to the disk.
  virtual Status done(std::size_t unit) = 0;
};

// Remembers nothing: every run does all.
class NoLedger final : public Ledger {
 public:
  bool is_done(std::size_t) const override { return false; }
  Status done(std::size_t) override { return ok(); }
};

}  // namespace ggufmill
