#pragma once
// How the units of a plan are cut to fit a memory budget, and what that costs. Pure; depends on the plan and the slab
// size alone.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/plan/plan.h"

namespace ggufmill {

// F32 values that one worker decodes at a time: with what they are made of and made into they stay in a core's L2
// cache. Every worker owns that much scratch outside of the budget, and as much again where errors are measured. Rows
// whose F32 form is longer bring their own, as a part of their slab's cost.
inline constexpr std::uint64_t kTileBytes = 256 << 10;

// What a buffer occupies: whole pages. (Of the least size that machines have: the cost must not depend on the machine.)
inline constexpr std::uint64_t kPageBytes = 4096;
std::uint64_t whole_pages(std::uint64_t bytes);  // at the edge of 64 bits

// Memory that a range takes beside its bytes, where many are read.
inline constexpr std::uint64_t kRangeCost = 64;

// Some whole rows of a unit; or, of a step whose bytes are only copied, some bytes of them.
struct SlabRows {
  std::size_t unit = 0;  // index into Plan::units
  std::size_t step = 0;
  std::uint64_t first_row = 0;   // of the tensor; the row that `first_byte` lies in
  std::uint64_t rows = 0;        // 0: bytes of a copy
  std::uint64_t first_byte = 0;  // of the expression's values
  std::uint64_t bytes = 0;       // likewise
  std::uint64_t cost = 0;        // bytes of budget for the whole way: what is read, and what is made of it
};

// Bytes of a row of `shape` in `type`; at the edge of 64 bits the largest number.
std::uint64_t row_bytes(const TypeInfo& type, const Shape& shape);

// The checksum of the encoded bytes of a unit is the sum (modulo 2^64) over its pieces of their XXH3 with 64 bits, with
// a piece's number in the unit as the seed: slabs, which hold whole pieces, add to it in whatever order and size they
// come. Pieces are rows; of a step whose bytes are only copied, runs of whole blocks of about a page.
std::uint64_t checksum(std::span<const std::byte> encoded, std::uint64_t piece_bytes, std::uint64_t first_piece);
// Of a copy.
std::uint64_t copied_piece_bytes(const TypeInfo& type);

// Whether the limits say so. Buffers for direct I/O lie in the memory's pages as the file does in blocks, so that each
// may need a page more.
bool is_direct(const Plan& plan);

// The memory that rows of one step take on their way: what is read, the expression's values where they have to be put
// together, one buffer for every encoding that is not the values as they are, F32 rows where they do not fit into a
// worker's scratch (twice where errors are measured), and importance weights. Sums that would not fit into 64 bits
// are the largest number that does.
class StepCost {
 public:
  StepCost(const Plan& plan, const Step& step);

  // Nothing is computed: bytes are read and written.
  bool copies_only() const { return copies_only_; }
  bool has_importance() const { return has_importance_; }
  // Rows of a slab lie within one matrix: those of expressions that are put together, and those with importance.
  bool stays_in_matrix() const { return stays_in_matrix_; }
  // F32 bytes of one row when the slab has to hold them; 0 when a worker's scratch does.
  std::uint64_t long_row_bytes() const { return long_row_; }
  // The same of a second row beside it: one that was encoded and is decoded again to measure its error, or that is
  // compared; 0 when nothing is measured.
  std::uint64_t measured_row_bytes() const { return measured_row_; }

  std::uint64_t of_rows(std::uint64_t rows) const;
  std::uint64_t of_bytes(std::uint64_t bytes) const;  // of a copy
  // Rows whose cost is at most `limit`; at least 1.
  std::uint64_t rows_within(std::uint64_t limit) const;
  // The same for a slab of `usual` cost; where that would read many pieces smaller than a page, as of a transpose, of
  // `most`: the more rows, the larger the pieces.
  std::uint64_t rows_of_slab(std::uint64_t usual, std::uint64_t most) const;
  // Bytes of whole blocks whose cost, as a copy, is at most `limit`; at least one block.
  std::uint64_t bytes_within(std::uint64_t limit) const;
  // The smallest piece: one row, or one block of a copy.
  std::uint64_t least() const;

 private:
  std::uint64_t read_cost(const Expression& expression, std::uint64_t rows) const;

  const Step& step_;
  bool copies_only_ = false, has_importance_ = false, stays_in_matrix_ = false;
  std::uint64_t long_row_ = 0, measured_row_ = 0;
  std::uint64_t fixed_ = 0;          // importance weights, pages of direct I/O
  std::vector<std::uint64_t> rows_;  // bytes of a row of each further buffer
};

// Hands out the slabs of a plan one by one, in order; holds a position, not the slabs. The plan outlives it.
// Not thread-safe.
class SlabCutter {
 public:
  SlabCutter(const Plan& plan, std::uint64_t slab_bytes) : plan_(plan), slab_bytes_(slab_bytes) {}

  // Slabs of `slab_bytes` of cost at most, where a row allows it (a row is never cut unless it is only copied).
  std::optional<SlabRows> next();
  // Goes on with the unit after that of the last slab.
  void skip_unit() { done_bytes_ = unit_bytes(); }

 private:
  std::uint64_t unit_bytes() const;
  SlabRows next_copy(const Unit& unit, const Step& step);
  SlabRows next_rows(const Unit& unit, const Step& step);

  const Plan& plan_;
  const std::uint64_t slab_bytes_;
  std::size_t unit_ = 0;
  std::uint64_t done_bytes_ = 0;  // of the unit
  std::size_t cost_step_ = 0;
  std::optional<StepCost> cost_;   // of step cost_step_
  std::uint64_t rows_within_ = 0;  // slab_bytes_, of that step
};

// The smallest memory limit under which every slab can be made: the cost of the costliest row or copied block.
std::uint64_t least_budget(const Plan& plan);

}  // namespace ggufmill
