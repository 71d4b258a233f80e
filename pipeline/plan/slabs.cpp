#include "pipeline/plan/slabs.h"

#include <xxhash.h>

#include <algorithm>

#include "pipeline/core/rows.h"

namespace ggufmill {
namespace {

// Returns the piece size, a multiple of `unit`, when `total` is divided into the fewest pieces of at most `most`, all
// about equal, so that no thread gets a tiny remainder.
std::uint64_t even_piece(std::uint64_t total, std::uint64_t most, std::uint64_t unit = 1) {
  const std::uint64_t units = ceil_div(total, unit);
  return ceil_div(units, ceil_div(units, most / unit)) * unit;
}

}  // namespace

std::uint64_t checksum(std::span<const std::byte> encoded, std::uint64_t piece_bytes, std::uint64_t first_piece) {
  std::uint64_t all = 0;
  for (; !encoded.empty(); ++first_piece) {
    const auto piece = encoded.first(std::min<std::size_t>(encoded.size(), piece_bytes));
    all += XXH3_64bits_withSeed(piece.data(), piece.size(), first_piece);
    encoded = encoded.subspan(piece.size());
  }
  return all;
}

std::uint64_t copied_piece_bytes(const Expression& copied) {
  const std::uint64_t grain = copied.grain_bytes();
  return std::max<std::uint64_t>(kPageBytes / grain, 1) * grain;
}

std::uint64_t SlabCutter::unit_bytes() const {
  const Unit& unit = plan_.units[unit_];
  return unit.rows * plan_.steps[unit.step].expression->row_bytes();
}

SlabRows SlabCutter::next_copy(const Unit& unit, const StepLayout& layout) {
  const Expression& expression = *layout.step().expression;
  const std::uint64_t piece = copied_piece_bytes(expression), row = expression.row_bytes();
  const std::uint64_t most = std::max<std::uint64_t>(layout.bytes_within(slab_bytes_) / piece, 1);
  const std::uint64_t bytes = even_piece(ceil_div(unit_bytes(), piece), most) * piece;
  SlabRows slab{unit_, unit.step, 0, 0, unit.first_row * row + done_bytes_, 0, 0};
  slab.first_row = slab.first_byte / row;
  slab.bytes = std::min(bytes, unit_bytes() - done_bytes_);
  slab.cost = layout.of_bytes(slab.bytes);
  done_bytes_ += slab.bytes;
  return slab;
}

SlabRows SlabCutter::next_rows(const Unit& unit, const StepLayout& layout) {
  const Shape& shape = layout.step().expression->shape;
  const std::uint64_t row_size = layout.step().expression->row_bytes();
  const std::uint64_t row = unit.first_row + done_bytes_ / row_size, end = unit.first_row + unit.rows;
  // The part of the unit that is divided into slabs: all of it, or the rows in the current matrix.
  std::uint64_t first = unit.first_row, last = end;
  if (layout.stays_in_matrix()) {
    const std::uint64_t matrix = row / shape.dims[1] * shape.dims[1];
    first = std::max(first, matrix);
    last = std::min(last, matrix + shape.dims[1]);
  }
  const std::uint64_t piece = even_piece(last - first, rows_within_, layout.even_rows(rows_within_));
  const std::uint64_t rows = std::min(piece, last - row);
  done_bytes_ += rows * row_size;
  return {unit_, unit.step, row, rows, row * row_size, rows * row_size, layout.of_rows(rows)};
}

// Several slabs should fit beside the metrics of a step, so that they can be read and written while others are
// converted.
std::uint64_t SlabCutter::rows_of_slab(const StepLayout& layout) const {
  constexpr std::uint64_t kSlabs = 8;
  if (layout.metrics().empty()) return layout.rows_of_slab(slab_bytes_, budget_ / 4);
  const std::uint64_t room = budget_ - std::min(budget_, layout.metric_bytes());
  return layout.rows_of_slab(std::min(slab_bytes_, room / kSlabs), room / kSlabs);
}

std::optional<SlabRows> SlabCutter::next() {
  if (unit_ < plan_.units.size() && done_bytes_ == unit_bytes()) {
    ++unit_;
    done_bytes_ = 0;
  }
  if (unit_ == plan_.units.size()) return std::nullopt;
  const Unit& unit = plan_.units[unit_];
  const StepLayout& layout = layouts_[unit.step];
  if (layout_ != &layout) {
    rows_within_ = layout.copies_only() ? 0 : rows_of_slab(layout);
    layout_ = &layout;
  }
  return layout.copies_only() ? next_copy(unit, layout) : next_rows(unit, layout);
}

}  // namespace ggufmill
