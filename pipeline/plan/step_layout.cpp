#include "pipeline/plan/step_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "pipeline/core/covariance.h"
#include "pipeline/core/importance.h"
#include "pipeline/core/rows.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

std::uint64_t f32_row_bytes(const Step& step) {
  return capped_product(step.expression->shape.columns(), sizeof(float));
}

std::uint64_t chosen_row_bytes(std::uint64_t columns) { return capped_product(columns, kLevelBytesPerColumn); }

// Returns the memory limit that a step needs.
std::uint64_t least_of(const StepLayout& layout) { return capped_sum(layout.least(), layout.metric_bytes()); }

// Returns the cost of reading what `rows` rows of an expression are assembled from.
std::uint64_t cost_of_reading(const Expression& assembled, std::uint64_t rows) {
  const ReadBound bound = read_bound(assembled, {assembled.shape.columns(), rows, 1, 1});
  return capped_sum(whole_pages(bound.bytes), whole_pages(capped_product(bound.ranges, kRangeCost)));
}

}  // namespace

std::uint64_t BufferLayout::bytes(std::uint64_t rows) const {
  return capped_product(capped_product(ceil_div(rows, group_rows), group_rows), row_bytes);
}

std::uint64_t whole_pages(std::uint64_t bytes) { return capped_sum(bytes, kPageBytes - 1) / kPageBytes * kPageBytes; }

bool is_direct(const Plan& plan) { return plan.limits.io == IoMode::kDirect; }

Work work_of(const Step& step, const Encoding& encoding) {
  if (encoding.type == step.expression->type) return encoding.big_endian ? Work::kSwap : Work::kCopy;
  return encoding.type->is_f32() ? Work::kDecode : Work::kEncode;
}

std::uint64_t group_rows_of(const Step& step) {
  std::uint64_t rows = 1;
  for (const Expression* values : {step.expression.get(), step.compared.get()})
    if (values && values->operation == Operation::kInterleave)
      rows = std::max<std::uint64_t>({rows, values->type->group_rows, values->inputs[0]->type->group_rows});
  for (const Encoding& encoding : step.encodings)
    if (work_of(step, encoding) == Work::kEncode)
      rows = std::max<std::uint64_t>(
          {rows, encoding.type->group_rows, encoding.covariance && chooses_shrink(encoding.encoder) ? kLevelRows : 1});
  return rows;  // a power of two, so a multiple of all of them
}

StepLayout::StepLayout(const Plan& plan, const Step& step) : step_(&step), group_rows_(group_rows_of(step)) {
  converts_ = measures_ = step.compared != nullptr;
  add_encodings(plan);
  add_metrics();
  add_buffers();
  add_fixed_cost(plan);
  stays_in_matrix_ = !assembled_.empty() || has_importance_ || !metrics_.empty();
  copies_only_ = !step.compared && step.expression->as_extent() && buffers_.size() == 1;
}

void StepLayout::add_encodings(const Plan& plan) {
  for (const Encoding& encoding : step_->encodings) {
    const Work work = work_of(*step_, encoding);
    const bool is_measured = plan.report.error && work == Work::kEncode;
    if (work == Work::kDecode && !encoding.big_endian) f32_encoding_ = encodings_.size();
    converts_ |= ggufmill::converts(work);
    measures_ |= is_measured;
    encodings_.push_back({work, is_measured, ggufmill::row_bytes(*encoding.type, step_->expression->shape)});
  }
}

void StepLayout::add_metrics() {
  for (std::size_t i = 0; i < encodings_.size(); ++i) {
    const Encoding& encoding = step_->encodings[i];
    if (!encoding.covariance || encodings_[i].work != Work::kEncode || metric_of(encoding)) continue;
    metrics_.push_back({encoding.covariance, encoding.encoder.shrink, encoding.encoder.damp});
    metric_bytes_ = capped_sum(metric_bytes_, encoding.covariance->metric_bytes());
  }
}

std::optional<std::size_t> StepLayout::metric_of(const Encoding& encoding) const {
  if (!encoding.covariance) return {};
  const std::string key = encoding.covariance->key();
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    if (metrics_[i].shrink == encoding.encoder.shrink && metrics_[i].damp == encoding.encoder.damp &&
        metrics_[i].covariance->key() == key)
      return i;
  return {};
}

// Returns the number of rows of which a tile has a multiple; both numbers are powers of two.
std::uint64_t StepLayout::tile_group() const {
  return metrics_.empty() ? group_rows_ : std::max(group_rows_, kRowsChosenTogether);
}

void StepLayout::add_buffers() {
  add_values(BufferLayout::kValues, *step_->expression);
  if (step_->compared) add_values(BufferLayout::kCompared, *step_->compared);
  const std::uint64_t f32_row = f32_row_bytes(*step_);
  if (capped_product(f32_row, tile_group()) > kTileBytes) {
    const bool has_place = step_->expression->type->is_f32() || f32_encoding_;
    if (converts_ && !has_place) buffers_.push_back({BufferLayout::kLongRows, 0, f32_row});
  }
  if (capped_product(f32_row, group_rows_) > kTileBytes && measures_)
    buffers_.push_back({BufferLayout::kMeasuredRows, 0, f32_row});
  if (!metrics_.empty())
    buffers_.push_back(
        {BufferLayout::kChosenRows, 0, chosen_row_bytes(step_->expression->shape.columns()), kLevelRows});
  for (std::size_t i = 0; i < encodings_.size(); ++i) {
    const EncodingLayout& encoding = encodings_[i];
    if (encoding.work != Work::kCopy) buffers_.push_back({BufferLayout::kEncoded, i, encoding.row_bytes});
    if (encoding.work == Work::kEncode && step_->encodings[i].type->plain)
      buffers_.push_back({BufferLayout::kPlainRows, i, encoding.row_bytes});
  }
}

void StepLayout::add_values(BufferLayout::Use use, const Expression& values) {
  buffers_.push_back({use, 0, ggufmill::row_bytes(*values.type, values.shape)});
  if (!values.as_extent()) assembled_.push_back(&values);
}

// Returns the cost of the weights of a matrix: sums and counts of each share; several shares are added up in memory of
// their own.
std::uint64_t StepLayout::importance_cost(const Importance& importance) const {
  std::uint64_t counts = sizeof(float);
  for (const Importance::Ranges& ranges : importance.own_ranges(0)) counts = capped_sum(counts, ranges.counts.bytes);
  const std::uint64_t shares = importance.shares.size();
  return whole_pages(capped_sum(capped_product(f32_row_bytes(*step_), shares <= 1 ? 1 : shares + 1), counts));
}

void StepLayout::add_fixed_cost(const Plan& plan) {
  std::set<const Importance*> importances;
  if (step_->importance) importances.insert(step_->importance.get());
  for (std::size_t i = 0; i < encodings_.size(); ++i)
    if (const Importance* importance = step_->encodings[i].importance.get();
        importance && ggufmill::converts(encodings_[i].work))
      importances.insert(importance);
  has_importance_ = !importances.empty();
  for (const Importance* importance : importances) fixed_ = capped_sum(fixed_, importance_cost(*importance));
  const auto encoded = std::ranges::count(buffers_, BufferLayout::kEncoded, &BufferLayout::use);
  if (is_direct(plan))
    fixed_ = capped_sum(fixed_, (2 + static_cast<std::uint64_t>(encoded) + assembled_.size()) * kPageBytes);
}

std::uint64_t StepLayout::tile_rows() const {
  const std::uint64_t row = converts_ ? f32_row_bytes(*step_) : step_->expression->row_bytes();
  const std::uint64_t group = std::max<std::uint64_t>(capped_product(row, tile_group()), 1);
  return std::max<std::uint64_t>(kTileBytes / group, 1) * tile_group();
}

std::uint64_t StepLayout::scratch_bytes() const {
  if (measures_) return 2 * kTileBytes;
  return converts_ && !step_->expression->type->is_f32() && !f32_encoding_ ? kTileBytes : 0;
}

std::uint64_t StepLayout::of_rows(std::uint64_t rows) const {
  std::uint64_t cost = fixed_;
  for (const Expression* expression : assembled_) cost = capped_sum(cost, cost_of_reading(*expression, rows));
  for (const BufferLayout& buffer : buffers_) cost = capped_sum(cost, whole_pages(buffer.bytes(rows)));
  return cost;
}

std::uint64_t StepLayout::of_bytes(std::uint64_t bytes) const { return capped_sum(fixed_, whole_pages(bytes)); }

std::uint64_t StepLayout::rows_within(std::uint64_t limit) const {
  const Shape& shape = step_->expression->shape;
  const std::uint64_t groups = ceil_div(stays_in_matrix_ ? shape.dims[1] : shape.rows(), group_rows_);
  std::uint64_t fits = 1, too_many = capped_sum(groups, 1);
  while (too_many - fits > 1) {  // the cost increases with the rows
    const std::uint64_t middle = fits + (too_many - fits) / 2;
    (of_rows(middle * group_rows_) <= limit ? fits : too_many) = middle;
  }
  return fits * group_rows_;
}

std::uint64_t StepLayout::rows_of_slab(std::uint64_t usual, std::uint64_t most) const {
  const std::uint64_t rows = rows_within(usual);
  if (!metrics_.empty()) {
    if (rows < kRowsChosenTogether)
      return std::max(std::min(rows_within(std::max(usual, most)), kRowsChosenTogether), least_rows());
    return rows / kRowsChosenTogether * kRowsChosenTogether;
  }
  if (step_->expression->as_extent()) return rows;
  const Shape& shape = step_->expression->shape;
  const ReadBound bound = read_bound(*step_->expression, {shape.columns(), std::min(rows, shape.dims[1]), 1, 1});
  return bound.bytes / std::max<std::uint64_t>(bound.ranges, 1) < kPageBytes ? rows_within(std::max(usual, most))
                                                                             : rows;
}

std::uint64_t StepLayout::even_rows(std::uint64_t rows) const {
  if (metrics_.empty() || rows < kLevelRows) return group_rows_;
  return rows < tile_group() ? std::max(group_rows_, kLevelRows) : tile_group();
}

std::uint64_t StepLayout::bytes_within(std::uint64_t limit) const {
  const std::uint64_t grain = step_->expression->grain_bytes();
  const std::uint64_t pages = (limit - std::min(limit, fixed_)) / kPageBytes;
  return std::max<std::uint64_t>(pages * kPageBytes / grain, 1) * grain;
}

// If levels are chosen, fewer rows would take hardly less memory and just as much time.
std::uint64_t StepLayout::least_rows() const {
  const std::uint64_t rows = std::max<std::uint64_t>(step_->expression->shape.dims[1], 1);
  return std::min(metrics_.empty() ? group_rows_ : std::max(group_rows_, kLevelRows), rows);
}

std::uint64_t StepLayout::least() const {
  return copies_only_ ? of_bytes(step_->expression->grain_bytes()) : of_rows(least_rows());
}

std::vector<StepLayout> layouts_of(const Plan& plan) {
  std::vector<StepLayout> layouts;
  layouts.reserve(plan.steps.size());
  for (const Step& step : plan.steps) layouts.emplace_back(plan, step);
  return layouts;
}

std::uint64_t least_slab(std::span<const StepLayout> layouts) {
  std::uint64_t least = 0;
  for (const StepLayout& layout : layouts) least = std::max(least, layout.least());
  return least;
}

std::uint64_t least_budget(std::span<const StepLayout> layouts) {
  std::uint64_t least = 0;
  for (const StepLayout& layout : layouts) least = std::max(least, least_of(layout));
  return least;
}

std::string why_least_budget(std::span<const StepLayout> layouts) {
  const auto most = std::ranges::max_element(layouts, {}, least_of);
  if (most == layouts.end() || most->metrics().empty()) return {};
  return fmt::format(
      "the covariance of the {} inputs of tensor {} takes {} of it; one that was collected in blocks (`--form "
      "block256`) "
      "takes less, and `encoder: search` needs none",
      most->step().expression->shape.columns(), quoted_name(most->step().name), human_bytes(most->metric_bytes()));
}

}  // namespace ggufmill
