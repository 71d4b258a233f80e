#include "pipeline/plan/slabs.h"

#include <xxhash.h>

#include <algorithm>
#include <set>

#include "pipeline/core/rows.h"

namespace ggufmill {
namespace {

// Returns the piece size when `total` is divided into the fewest pieces of at most `most`, all about equal, so that no
// thread gets a tiny remainder.
std::uint64_t even_piece(std::uint64_t total, std::uint64_t most) { return ceil_div(total, ceil_div(total, most)); }

}  // namespace

std::uint64_t whole_pages(std::uint64_t bytes) { return capped_sum(bytes, kPageBytes - 1) / kPageBytes * kPageBytes; }

std::uint64_t row_bytes(const TypeInfo& type, const Shape& shape) {
  return capped_product(shape.columns() / type.block_elements, type.block_bytes);
}

std::uint64_t checksum(std::span<const std::byte> encoded, std::uint64_t piece_bytes, std::uint64_t first_piece) {
  std::uint64_t all = 0;
  for (; !encoded.empty(); ++first_piece) {
    const auto piece = encoded.first(std::min<std::size_t>(encoded.size(), piece_bytes));
    all += XXH3_64bits_withSeed(piece.data(), piece.size(), first_piece);
    encoded = encoded.subspan(piece.size());
  }
  return all;
}

std::uint64_t copied_piece_bytes(const TypeInfo& type) {
  return std::max<std::uint64_t>(kPageBytes / type.block_bytes, 1) * type.block_bytes;
}

bool is_direct(const Plan& plan) { return plan.limits.io == IoMode::kDirect; }

StepCost::StepCost(const Plan& plan, const Step& step) : step_(step) {
  const Expression& values = *step.expression;
  bool f32_is_at_hand = values.type->is_f32(), changes = false, converts = false, encodes = false;
  std::set<const Importance*> importances;
  if (step.importance) importances.insert(step.importance.get());
  for (const Encoding& encoding : step.encodings) {
    const bool same = encoding.type == values.type;
    if (same && !encoding.big_endian) continue;
    changes = true;
    rows_.push_back(row_bytes(*encoding.type, values.shape));
    if (same) continue;
    converts = true;
    f32_is_at_hand |= encoding.type->is_f32() && !encoding.big_endian;
    encodes |= !encoding.type->is_f32();
    if (encoding.importance) importances.insert(encoding.importance.get());
  }
  for (const Expression* read : {step.expression.get(), step.compared.get()})
    if (read && !read->as_extent()) {
      rows_.push_back(read->row_bytes());
      stays_in_matrix_ = true;
    }
  copies_only_ = !changes && !step.compared && values.as_extent();
  has_importance_ = !importances.empty();
  stays_in_matrix_ |= has_importance_;
  const std::uint64_t f32_row = capped_product(values.shape.columns(), sizeof(float));
  for (const Importance* importance : importances)  // weights, and the counts by which they are divided
    fixed_ = capped_sum(fixed_, whole_pages(capped_sum(f32_row, importance->ranges(0).counts.bytes + sizeof(float))));
  if (is_direct(plan)) fixed_ += (2 + rows_.size()) * kPageBytes;
  const bool decodes = converts || step.compared;
  if (!f32_is_at_hand && decodes && f32_row > kTileBytes) long_row_ = f32_row;
  if (((plan.report.error && encodes) || step.compared) && f32_row > kTileBytes) measured_row_ = f32_row;
  if (long_row_ != 0) rows_.push_back(long_row_);
  if (measured_row_ != 0) rows_.push_back(measured_row_);
}

std::uint64_t StepCost::read_cost(const Expression& expression, std::uint64_t rows) const {
  if (expression.as_extent()) return whole_pages(capped_product(rows, expression.row_bytes()));
  const ReadBound bound = read_bound(expression, {expression.shape.columns(), rows, 1, 1});
  return capped_sum(whole_pages(bound.bytes), whole_pages(capped_product(bound.ranges, kRangeCost)));
}

std::uint64_t StepCost::of_rows(std::uint64_t rows) const {
  std::uint64_t cost = capped_sum(fixed_, read_cost(*step_.expression, rows));
  if (step_.compared) cost = capped_sum(cost, read_cost(*step_.compared, rows));
  for (const std::uint64_t row : rows_) cost = capped_sum(cost, whole_pages(capped_product(rows, row)));
  return cost;
}

std::uint64_t StepCost::of_bytes(std::uint64_t bytes) const { return capped_sum(fixed_, whole_pages(bytes)); }

std::uint64_t StepCost::rows_within(std::uint64_t limit) const {
  std::uint64_t fits = 1, too_many = capped_sum(step_.expression->shape.dims[1], 1);
  if (!stays_in_matrix_) too_many = capped_sum(step_.expression->shape.rows(), 1);
  while (too_many - fits > 1) {  // the cost increases with the rows
    const std::uint64_t middle = fits + (too_many - fits) / 2;
    (of_rows(middle) <= limit ? fits : too_many) = middle;
  }
  return fits;
}

std::uint64_t StepCost::rows_of_slab(std::uint64_t usual, std::uint64_t most) const {
  const std::uint64_t rows = rows_within(usual);
  if (step_.expression->as_extent()) return rows;
  const ReadBound bound = read_bound(*step_.expression, {step_.expression->shape.columns(), rows, 1, 1});
  return bound.bytes / std::max<std::uint64_t>(bound.ranges, 1) < kPageBytes ? rows_within(std::max(usual, most))
                                                                             : rows;
}

std::uint64_t StepCost::bytes_within(std::uint64_t limit) const {
  const std::uint64_t block = step_.expression->type->block_bytes;
  const std::uint64_t pages = (limit - std::min(limit, fixed_)) / kPageBytes;
  return std::max<std::uint64_t>(pages * kPageBytes / block, 1) * block;
}

std::uint64_t StepCost::least() const {
  return copies_only_ ? of_bytes(step_.expression->type->block_bytes) : of_rows(1);
}

std::uint64_t SlabCutter::unit_bytes() const {
  const Unit& unit = plan_.units[unit_];
  return unit.rows * plan_.steps[unit.step].expression->row_bytes();
}

SlabRows SlabCutter::next_copy(const Unit& unit, const Step& step) {
  const std::uint64_t piece = copied_piece_bytes(*step.expression->type), row = step.expression->row_bytes();
  const std::uint64_t most = std::max<std::uint64_t>(cost_->bytes_within(slab_bytes_) / piece, 1);
  const std::uint64_t bytes = even_piece(ceil_div(unit_bytes(), piece), most) * piece;
  SlabRows slab{unit_, unit.step, 0, 0, unit.first_row * row + done_bytes_, 0, 0};
  slab.first_row = slab.first_byte / row;
  slab.bytes = std::min(bytes, unit_bytes() - done_bytes_);
  slab.cost = cost_->of_bytes(slab.bytes);
  done_bytes_ += slab.bytes;
  return slab;
}

SlabRows SlabCutter::next_rows(const Unit& unit, const Step& step) {
  const Shape& shape = step.expression->shape;
  const std::uint64_t row_size = step.expression->row_bytes();
  const std::uint64_t row = unit.first_row + done_bytes_ / row_size, end = unit.first_row + unit.rows;
  // The part of the unit that is divided into slabs: all of it, or the rows in the current matrix.
  std::uint64_t first = unit.first_row, last = end;
  if (cost_->stays_in_matrix()) {
    const std::uint64_t matrix = row / shape.dims[1] * shape.dims[1];
    first = std::max(first, matrix);
    last = std::min(last, matrix + shape.dims[1]);
  }
  const std::uint64_t piece = even_piece(last - first, rows_within_);
  const std::uint64_t rows = std::min(piece, last - row);
  done_bytes_ += rows * row_size;
  return {unit_, unit.step, row, rows, row * row_size, rows * row_size, cost_->of_rows(rows)};
}

std::optional<SlabRows> SlabCutter::next() {
  if (unit_ < plan_.units.size() && done_bytes_ == unit_bytes()) {
    ++unit_;
    done_bytes_ = 0;
  }
  if (unit_ == plan_.units.size()) return std::nullopt;
  const Unit& unit = plan_.units[unit_];
  const Step& step = plan_.steps[unit.step];
  if (!cost_ || cost_step_ != unit.step) {
    cost_.emplace(plan_, step);
    rows_within_ = cost_->copies_only() ? 0 : cost_->rows_of_slab(slab_bytes_, memory_budget(plan_.limits) / 4);
    cost_step_ = unit.step;
  }
  return cost_->copies_only() ? next_copy(unit, step) : next_rows(unit, step);
}

std::uint64_t least_budget(const Plan& plan) {
  std::uint64_t least = 0;
  for (const Step& step : plan.steps) least = std::max(least, StepCost(plan, step).least());
  return least;
}

}  // namespace ggufmill
