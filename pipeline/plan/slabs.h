#pragma once
// Divides the units of a plan into slabs that fit a memory budget. Pure functions of the plan and the slab size.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/core/lifetime.h"
#include "pipeline/plan/step_layout.h"

namespace ggufmill {

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

// Returns the contribution of some encoded bytes to the checksum of their unit. That is the sum (modulo 2^64) of the
// 64-bit XXH3 of its pieces, each seeded with the piece's number in the unit. Slabs contain whole pieces, so they can
// be added in any order and size. Pieces are rows or, if the step only copies bytes, runs of whole blocks (or of rows,
// if those have headers) of about a page.
std::uint64_t checksum(std::span<const std::byte> encoded, std::uint64_t piece_bytes, std::uint64_t first_piece);
// Returns the piece size of a copy.
std::uint64_t copied_piece_bytes(const Expression& copied);

// Cuts a plan into slabs and returns them one at a time, in order. Stores only a position, not the slabs. The plan and
// the layouts of its steps must outlive it. Not thread-safe.
class SlabCutter {
 public:
  // `budget`: what slabs and metrics may take together.
  SlabCutter(GGUFMILL_OUTLIVES_RESULT const Plan& plan, GGUFMILL_OUTLIVES_RESULT std::span<const StepLayout> layouts,
             std::uint64_t slab_bytes, std::uint64_t budget)
      : plan_(plan), layouts_(layouts), slab_bytes_(slab_bytes), budget_(budget) {}
  SlabCutter(GGUFMILL_OUTLIVES_RESULT const Plan& plan, GGUFMILL_OUTLIVES_RESULT std::span<const StepLayout> layouts,
             std::uint64_t slab_bytes)
      : SlabCutter(plan, layouts, slab_bytes, memory_budget(plan.limits)) {}

  // Returns the next slab, which costs at most `slab_bytes` unless a single row costs more; rows are divided only if
  // they are just copied.
  std::optional<SlabRows> next();
  // Skips the rest of the last slab's unit.
  void skip_unit() { done_bytes_ = unit_bytes(); }

 private:
  std::uint64_t unit_bytes() const;
  SlabRows next_copy(const Unit& unit, const StepLayout& layout);
  SlabRows next_rows(const Unit& unit, const StepLayout& layout);
  std::uint64_t rows_of_slab(const StepLayout& layout) const;

  const Plan& plan_;
  const std::span<const StepLayout> layouts_;
  const std::uint64_t slab_bytes_, budget_;
  std::size_t unit_ = 0;
  std::uint64_t done_bytes_ = 0;        // in the current unit
  const StepLayout* layout_ = nullptr;  // the one for which rows_within_ is set
  std::uint64_t rows_within_ = 0;       // rows per slab of that step
};

}  // namespace ggufmill
