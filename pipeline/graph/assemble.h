#pragma once
// Puts the rows of tensor expressions together, from the bytes that were read for them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/core/rows.h"
#include "pipeline/kernels/kernels.h"

namespace ggufmill {

// What was read for some rows: ranges of sources, in the order of ranges_of(), one after the other in memory.
class ReadRanges {
 public:
  ReadRanges() = default;
  explicit ReadRanges(std::vector<ByteRange> ranges);

  const std::vector<ByteRange>& ranges() const { return ranges_; }
  std::uint64_t bytes() const { return starts_.back(); }
  // The memory of range `index`, and that of all.
  std::span<std::byte> memory(std::size_t index) const;
  void set_memory(std::span<std::byte> memory) { memory_ = memory; }

  // The bytes at `offset` of a source, which lie in one of the ranges. `hint`: where the last ones lay; mostly the next
  // do, too.
  const std::byte* find(const SourceFile& source, std::uint64_t offset, std::size_t& hint) const;

 private:
  std::vector<ByteRange> ranges_;
  std::vector<std::uint64_t> starts_{0};  // in memory, and their end
  std::vector<const SourceFile*> order_;  // of the sources
  std::span<std::byte> memory_;
};

// Writes the elements of `box` to `into`, packed. `read` holds what ranges_of() says. Thread-safe for separate `into`.
// Exit code 4 for values that a cast cannot represent, 1 for a kernel that fails; `tensor` is for messages.
Status assemble(const Expression& expression, const Box& box, const ReadRanges& read, const Kernels& kernels,
                const std::string& tensor, std::span<std::byte> into);

// Runs a kernel. Exit code 4 where values are too large for its type, 1 where it fails.
Status run_kernel(const KernelChoice& choice, const ggufmill_call& call, const std::string& tensor);

}  // namespace ggufmill
