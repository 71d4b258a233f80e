#pragma once
// Assembles the rows of tensor expressions from the bytes that were read for them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/rows.h"
#include "pipeline/kernels/kernels.h"

namespace ggufmill {

// The bytes read for some rows: source ranges in the order of ranges_of(), stored contiguously in memory.
class ReadRanges {
 public:
  ReadRanges() = default;
  explicit ReadRanges(std::vector<ByteRange> ranges);

  const std::vector<ByteRange>& ranges() const { return ranges_; }
  std::uint64_t bytes() const { return starts_.back(); }
  // memory() returns the memory of range `index`; set_memory() sets that of all ranges.
  std::span<std::byte> memory(std::size_t index) const;
  void set_memory(std::span<std::byte> memory) { memory_ = memory; }

  // Returns the bytes at `offset` of a source, which must be in one of the ranges. `hint` is the index of the range
  // found last; consecutive calls usually find the same one.
  const std::byte* find(const SourceFile& source, std::uint64_t offset, std::size_t& hint) const;

 private:
  std::vector<ByteRange> ranges_;
  std::vector<std::uint64_t> starts_{0};  // offset of each range in memory, and the end of the last
  std::vector<const SourceFile*> order_;  // sources in the order of their ranges
  std::span<std::byte> memory_;
};

// Decides about a value that is not finite, see RowMaterial::replaces_nonfinite().
using NonfiniteRule =
    std::function<Result<bool>(const Expression& values, std::uint64_t row, std::uint64_t column, float value)>;

// Writes the elements of `box` to `into`, packed. `read` must contain the ranges returned by ranges_of(). Thread-safe
// for distinct `into`. Fails with exit code 4 for values that a cast cannot represent, 1 if a kernel fails; `tensor` is
// the name for messages. `rule` decides about values that are not finite if the result would not show them; without it,
// they are taken as they are.
Status assemble(const Expression& expression, const Box& box, const ReadRanges& read, const Kernels& kernels,
                const std::string& tensor, std::span<std::byte> into, const NonfiniteRule& rule = {});

// Runs a kernel. Fails with exit code 4 if values are too large for its type; if the kernel fails, with 5
// if it is a loaded module's, else with 1.
Status run_kernel(const KernelChoice& choice, const KernelCall& call, const std::string& tensor);

}  // namespace ggufmill
