#pragma once
// How a plan is cut into slabs, and what each costs. Pure; depends on the plan and the slab size alone.

#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/plan/plan.h"

namespace ggufmill {

// F32 values that one worker decodes at a time: with what they are made of and made into they stay in a core's L2
// cache. Every worker owns that much scratch outside of the budget, and as much again where errors are measured. Rows
// whose F32 form is longer bring their own, as a part of their slab's cost.
inline constexpr std::uint64_t kTileBytes = 256 << 10;

// What a buffer occupies: whole pages. (Of the least size that machines have: the cost must not depend on the machine.)
inline constexpr std::uint64_t kPageBytes = 4096;

const Tensor& tensor_of(const Plan& plan, const Target& target);

// True where the target's bytes come from kernels; false where they are the source's.
bool is_converted(const Plan& plan, const Route& route, const Target& target);

// Whether the limits say so. Buffers for direct I/O lie in the memory's pages as the file does in blocks, so that each
// may need a page more.
bool is_direct(const Plan& plan);

// The memory that rows of one route take on their way: source buffer, one buffer for every converted target, F32 rows
// where they do not fit into a worker's scratch (twice where errors are measured), and importance weights. Figures that
// would pass 2^64 stay at its edge.
class RouteCost {
 public:
  RouteCost(const Plan& plan, const Route& route);

  bool copies_only() const { return outputs_.empty(); }
  bool has_importance() const { return has_importance_; }
  std::uint64_t source_row_bytes() const { return source_row_; }
  // F32 bytes of one row when the slab has to hold them; 0 when a worker's scratch does.
  std::uint64_t long_row_bytes() const { return long_row_; }
  // The same of one row that was encoded and is decoded again, to measure its error; 0 when nothing is measured.
  std::uint64_t measured_row_bytes() const { return measured_row_; }

  std::uint64_t of_rows(std::uint64_t rows) const;
  std::uint64_t of_bytes(std::uint64_t bytes) const;  // of a copy
  // Rows whose cost is at most `limit`; at least 1.
  std::uint64_t rows_within(std::uint64_t limit) const;
  // Bytes of whole blocks whose cost, as a copy, is at most `limit`; at least one block.
  std::uint64_t bytes_within(std::uint64_t limit) const;
  // The smallest piece: one row, or one block of a copy.
  std::uint64_t least() const;

 private:
  std::uint64_t block_bytes_;
  std::uint64_t source_row_ = 0;
  std::uint64_t long_row_ = 0;
  std::uint64_t measured_row_ = 0;
  std::uint64_t fixed_ = 0;             // importance weights, pages of direct I/O
  std::vector<std::uint64_t> outputs_;  // bytes of a row of each converted target
  bool has_importance_ = false;
};

// Hands out the slabs of a plan one by one, in order; holds a position, not the slabs. The plan outlives it.
// Not thread-safe.
class SlabCutter {
 public:
  SlabCutter(const Plan& plan, std::uint64_t slab_bytes) : plan_(plan), slab_bytes_(slab_bytes) {}

  std::optional<Slab> next();

 private:
  Slab next_copy(const Route& route);
  Slab next_rows(const Route& route);

  const Plan& plan_;
  const std::uint64_t slab_bytes_;
  std::size_t route_ = 0;
  std::uint64_t row_ = 0;   // of the current route
  std::uint64_t byte_ = 0;  // of the current route's source
  std::optional<RouteCost> cost_;
};

// The smallest memory limit under which every slab can be made: the cost of the costliest row or copied block.
std::uint64_t least_budget(const Plan& plan);

}  // namespace ggufmill
