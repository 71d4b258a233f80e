#pragma once
// Divides the units of a plan into slabs that fit a memory budget, and computes their cost. Pure functions of the plan
// and the slab size.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/plan/plan.h"

namespace ggufmill {

// F32 bytes that one worker decodes at a time; together with the source and the encoded bytes they fit into a core's L2
// cache. Every worker has scratch memory of this size outside the budget, and twice that if errors are measured. Rows
// whose F32 form is longer get their own memory, which is included in their slab's cost.
inline constexpr std::uint64_t kTileBytes = 256 << 10;

// A buffer occupies whole pages. This is the smallest page size in use, because the cost must not depend on the
// machine.
inline constexpr std::uint64_t kPageBytes = 4096;
std::uint64_t whole_pages(std::uint64_t bytes);  // saturates near 2^64

// Bookkeeping memory per range, if many ranges are read.
inline constexpr std::uint64_t kRangeCost = 64;

// Some whole rows of a unit; or, if the step only copies bytes, some bytes of them.
struct SlabRows {
  std::size_t unit = 0;  // index into Plan::units
  std::size_t step = 0;
  std::uint64_t first_row = 0;   // of the tensor; the row that contains `first_byte`
  std::uint64_t rows = 0;        // 0: bytes of a copy
  std::uint64_t first_byte = 0;  // offset in the expression's values
  std::uint64_t bytes = 0;       // bytes of the expression's values
  std::uint64_t cost = 0;        // bytes of budget for reading, converting and writing
};

// Returns the bytes of a row of `shape` in `type`; saturates at the largest 64-bit number.
std::uint64_t row_bytes(const TypeInfo& type, const Shape& shape);

// Returns the contribution of some encoded bytes to the checksum of their unit. That is the sum (modulo 2^64) of the
// 64-bit XXH3 of its pieces, each seeded with the piece's number in the unit. Slabs contain whole pieces, so they can
// be added in any order and size. Pieces are rows or, if the step only copies bytes, runs of whole blocks of about a
// page.
std::uint64_t checksum(std::span<const std::byte> encoded, std::uint64_t piece_bytes, std::uint64_t first_piece);
// Returns the piece size of a copy.
std::uint64_t copied_piece_bytes(const TypeInfo& type);

// Returns true if the limits request direct I/O. Its buffers have the same offset in a memory page as in a disk block,
// so each may need one more page.
bool is_direct(const Plan& plan);

// The memory needed for rows of one step: the bytes read, the expression's values if they have to be assembled, a
// buffer for every encoding that differs from the values, F32 rows if they do not fit into a worker's scratch (twice if
// errors are measured), and importance weights. Sums that exceed 64 bits saturate.
class StepCost {
 public:
  StepCost(const Plan& plan, const Step& step);

  // True if nothing is computed: bytes are only read and written.
  bool copies_only() const { return copies_only_; }
  bool has_importance() const { return has_importance_; }
  // True if slabs must not cross matrix boundaries: for assembled expressions, and with importance.
  bool stays_in_matrix() const { return stays_in_matrix_; }
  // F32 bytes of one row, if the slab has to hold them; 0 if a worker's scratch suffices.
  std::uint64_t long_row_bytes() const { return long_row_; }
  // The same for a second row: one that is compared, or that is decoded from its encoding to measure the error; 0 if
  // nothing is measured.
  std::uint64_t measured_row_bytes() const { return measured_row_; }

  std::uint64_t of_rows(std::uint64_t rows) const;
  std::uint64_t of_bytes(std::uint64_t bytes) const;  // of a copy
  // Returns the number of rows whose cost is at most `limit`; at least 1.
  std::uint64_t rows_within(std::uint64_t limit) const;
  // Returns the same for a slab with cost `usual`. If that would read many pieces smaller than a page, as for a
  // transpose, the limit is `most` instead: more rows make larger pieces.
  std::uint64_t rows_of_slab(std::uint64_t usual, std::uint64_t most) const;
  // Returns the bytes of whole blocks that cost at most `limit` as a copy; at least one block.
  std::uint64_t bytes_within(std::uint64_t limit) const;
  // Returns the cost of the smallest piece: one row, or one block of a copy.
  std::uint64_t least() const;

 private:
  std::uint64_t read_cost(const Expression& expression, std::uint64_t rows) const;

  const Step& step_;
  bool copies_only_ = false, has_importance_ = false, stays_in_matrix_ = false;
  std::uint64_t long_row_ = 0, measured_row_ = 0;
  std::uint64_t fixed_ = 0;          // importance weights, page offsets of direct I/O
  std::vector<std::uint64_t> rows_;  // bytes per row of each further buffer
};

// Cuts a plan into slabs and returns them one at a time, in order. Stores only a position, not the slabs. The plan must
// outlive it. Not thread-safe.
class SlabCutter {
 public:
  SlabCutter(const Plan& plan, std::uint64_t slab_bytes) : plan_(plan), slab_bytes_(slab_bytes) {}

  // Returns the next slab, which costs at most `slab_bytes` unless a single row costs more; rows are divided only if
  // they are just copied.
  std::optional<SlabRows> next();
  // Skips the rest of the last slab's unit.
  void skip_unit() { done_bytes_ = unit_bytes(); }

 private:
  std::uint64_t unit_bytes() const;
  SlabRows next_copy(const Unit& unit, const Step& step);
  SlabRows next_rows(const Unit& unit, const Step& step);

  const Plan& plan_;
  const std::uint64_t slab_bytes_;
  std::size_t unit_ = 0;
  std::uint64_t done_bytes_ = 0;  // in the current unit
  std::size_t cost_step_ = 0;
  std::optional<StepCost> cost_;   // of step cost_step_
  std::uint64_t rows_within_ = 0;  // rows per slab of that step
};

// Returns the smallest memory limit with which every slab can be made: the cost of the costliest row or copied block.
std::uint64_t least_budget(const Plan& plan);

}  // namespace ggufmill
