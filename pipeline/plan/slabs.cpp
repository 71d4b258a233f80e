#include "pipeline/plan/slabs.h"

#include <algorithm>
#include <set>

namespace ggufmill {
namespace {

constexpr std::uint64_t kMost = UINT64_MAX;

std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a > kMost - b ? kMost : a + b; }

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? kMost : result;
}

std::uint64_t whole_pages(std::uint64_t bytes) { return sum(bytes, kPageBytes - 1) / kPageBytes * kPageBytes; }

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

std::uint64_t row_bytes(const TypeInfo& type, const Shape& shape) {
  return product(shape.columns() / type.block_elements, type.block_bytes);
}

bool is_f32(const TypeInfo& type) {
  static const TypeInfo& f32 = type_named("F32");
  return &type == &f32;
}

// The size of the pieces when `total` is cut into the fewest pieces of at most `most`, all about equal: no thread is
// left with a sliver.
std::uint64_t even_piece(std::uint64_t total, std::uint64_t most) { return ceil_div(total, ceil_div(total, most)); }

}  // namespace

const Tensor& tensor_of(const Plan& plan, const Target& target) {
  return plan.outputs[target.output].model.tensors[target.tensor];
}

bool is_direct(const Plan& plan) { return plan.limits.io == IoMode::kDirect; }

bool is_converted(const Plan& plan, const Route& route, const Target& target) {
  return tensor_of(plan, target).type != route.source.type;
}

RouteCost::RouteCost(const Plan& plan, const Route& route)
    : block_bytes_(route.source.type->block_bytes), source_row_(row_bytes(*route.source.type, route.shape)) {
  bool f32_is_at_hand = is_f32(*route.source.type), encodes = false;
  std::set<const Importance*> importances;
  for (const Target& target : route.targets) {
    if (!is_converted(plan, route, target)) continue;
    const Tensor& tensor = tensor_of(plan, target);
    outputs_.push_back(row_bytes(*tensor.type, route.shape));
    f32_is_at_hand |= is_f32(*tensor.type);
    encodes |= !is_f32(*tensor.type);
    if (tensor.importance) importances.insert(tensor.importance.get());
  }
  const std::uint64_t f32_row = product(route.shape.columns(), sizeof(float));
  has_importance_ = !importances.empty();
  fixed_ = product(importances.size(), whole_pages(f32_row));
  if (is_direct(plan)) fixed_ += (1 + outputs_.size()) * kPageBytes;
  if (!f32_is_at_hand && !copies_only() && f32_row > kTileBytes) long_row_ = f32_row;
  if (plan.report.error && encodes && f32_row > kTileBytes) measured_row_ = f32_row;
}

std::uint64_t RouteCost::of_rows(std::uint64_t rows) const {
  std::uint64_t cost = sum(fixed_, whole_pages(product(rows, source_row_)));
  for (std::uint64_t row : outputs_) cost = sum(cost, whole_pages(product(rows, row)));
  return sum(sum(cost, whole_pages(product(rows, long_row_))), whole_pages(product(rows, measured_row_)));
}

std::uint64_t RouteCost::of_bytes(std::uint64_t bytes) const { return sum(fixed_, whole_pages(bytes)); }

std::uint64_t RouteCost::rows_within(std::uint64_t limit) const {
  std::uint64_t row = sum(sum(source_row_, long_row_), measured_row_);
  for (std::uint64_t output : outputs_) row = sum(row, output);
  // What the rounding to pages can add: nearly a page for each buffer.
  const std::uint64_t fixed = sum(fixed_, (outputs_.size() + 3) * (kPageBytes - 1));
  return limit <= fixed ? 1 : std::max<std::uint64_t>((limit - fixed) / row, 1);
}

std::uint64_t RouteCost::bytes_within(std::uint64_t limit) const {
  const std::uint64_t pages = (limit - std::min(limit, fixed_)) / kPageBytes;
  return std::max<std::uint64_t>(pages * kPageBytes / block_bytes_, 1) * block_bytes_;
}

std::uint64_t RouteCost::least() const { return copies_only() ? of_bytes(block_bytes_) : of_rows(1); }

Slab SlabCutter::next_copy(const Route& route) {
  const std::uint64_t blocks = route.source.bytes / route.source.type->block_bytes;
  const std::uint64_t most = cost_->bytes_within(slab_bytes_) / route.source.type->block_bytes;
  const std::uint64_t piece = even_piece(blocks, most) * route.source.type->block_bytes;
  Slab slab{route_, 0, 0, byte_, std::min(piece, route.source.bytes - byte_), 0};
  slab.cost = cost_->of_bytes(slab.source_bytes);
  byte_ += slab.source_bytes;
  return slab;
}

Slab SlabCutter::next_rows(const Route& route) {
  // Without importance weights the rows of all matrices are alike.
  const std::uint64_t matrix = cost_->has_importance() ? route.shape.dims[1] : route.shape.rows();
  const std::uint64_t piece = even_piece(matrix, cost_->rows_within(slab_bytes_));
  const std::uint64_t rows = std::min(piece, matrix - row_ % matrix);
  const Slab slab{route_, row_, rows, byte_, rows * cost_->source_row_bytes(), cost_->of_rows(rows)};
  row_ += rows;
  byte_ += slab.source_bytes;
  return slab;
}

std::optional<Slab> SlabCutter::next() {
  while (route_ < plan_.routes.size() && byte_ == plan_.routes[route_].source.bytes) {
    ++route_;
    row_ = byte_ = 0;
    cost_.reset();
  }
  if (route_ == plan_.routes.size()) return std::nullopt;
  const Route& route = plan_.routes[route_];
  if (!cost_) cost_.emplace(plan_, route);
  return cost_->copies_only() ? next_copy(route) : next_rows(route);
}

std::vector<Slab> cut_slabs(const Plan& plan, std::uint64_t slab_bytes) {
  std::vector<Slab> slabs;
  SlabCutter cutter(plan, slab_bytes);
  while (std::optional<Slab> slab = cutter.next()) slabs.push_back(*slab);
  return slabs;
}

std::uint64_t least_budget(const Plan& plan) {
  std::uint64_t least = 0;
  for (const Route& route : plan.routes)
    if (route.source.bytes != 0) least = std::max(least, RouteCost(plan, route).least());
  return least;
}

}  // namespace ggufmill
