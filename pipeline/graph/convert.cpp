#include "pipeline/graph/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/core/byte_order.h"
#include "pipeline/graph/finite.h"
#include "pipeline/graph/measuring.h"
#include "pipeline/graph/run_kernel.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

// Some rows of a leg; `first` counts from the slab's first row.
struct Tile {
  const Flight& flight;
  Leg& leg;
  const RouteWork& work;
  std::uint64_t first;
  std::uint64_t rows;

  std::uint64_t columns() const { return work.route->shape.columns(); }
  std::uint64_t row_in_tensor(std::uint64_t row) const { return leg.slab.first_row + first + row; }
  std::span<std::byte> part(std::span<std::byte> of, std::uint64_t row_bytes) const {
    return of.subspan(first * row_bytes, rows * row_bytes);
  }
  std::span<std::byte> source() const { return part(leg.source, work.row_bytes); }
};

std::span<float> as_floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// Where the tile's F32 values are, or are to be decoded to.
std::span<float> values_of(const Tile& tile, std::span<float> scratch) {
  const std::uint64_t row_bytes = tile.columns() * sizeof(float);
  if (!tile.work.decode.kernel) return as_floats(tile.source());
  if (tile.work.f32_target) return as_floats(tile.part(tile.leg.outputs[*tile.work.f32_target], row_bytes));
  if (tile.work.long_row_bytes != 0) return as_floats(tile.part(tile.leg.long_rows, row_bytes));
  return scratch.first(tile.rows * tile.columns());
}

// The value at `index` of the tile, named by its place in the tensor and in the file (for blocks: that of its block).
Error not_finite(const Tile& tile, std::uint64_t index, float value, const std::vector<SourceFile>& files) {
  const Route& route = *tile.work.route;
  const TypeInfo& type = *route.source.type;
  const std::uint64_t row = index / tile.columns(), column = index % tile.columns();
  const std::uint64_t in_row = column / type.block_elements * type.block_bytes;
  const std::uint64_t byte =
      route.source.offset + tile.leg.slab.first_byte + (tile.first + row) * tile.work.row_bytes + in_row;
  return {ExitCode::kBadInput, "",
          fmt::format("tensor '{}', row {}, column {}: {}", route.name, tile.row_in_tensor(row), column,
                      std::isnan(value) ? "NaN" : "infinity"),
          fmt::format("in {} at byte {:#x}; nothing was written", files[route.source.file].path, byte), ""};
}

Error too_large(const Tile& tile, const TargetWork& target, std::uint64_t block) {
  const TypeInfo& type = *target.tensor->type;
  const std::uint64_t blocks = tile.columns() / type.block_elements;
  const std::uint64_t column = block % blocks * type.block_elements;
  return {ExitCode::kBadInput, "",
          fmt::format("tensor '{}', row {}, column {}: a value is too large for {}", target.tensor->name,
                      tile.row_in_tensor(block / blocks), column, type.name),
          fmt::format("the {} that the values come to is not finite; nothing was written",
                      type.block_elements == 1 ? "number" : "block's scale"),
          "choose a type with a greater range for this tensor, such as BF16 or F32"};
}

Status encode(const Tile& tile, std::size_t index, std::span<const float> values) {
  const TargetWork& target = tile.work.targets[index];
  const MeasuredTime time(target.measure);
  const ProfiledStep step(ProfileStep::kEncode, tile.flight, tile.leg);
  const std::span<std::byte> into = tile.part(tile.leg.outputs[index], target.row_bytes);
  if (target.kind == TargetKind::kDecode) {  // decoded to its place, or to that of another output
    if (values.data() != reinterpret_cast<const float*>(into.data()))
      std::ranges::copy(std::as_bytes(values), into.begin());
    return ok();
  }
  const float* importance = target.importance ? tile.leg.importance[*target.importance].data() : nullptr;
  const ggufmill_call call{values.data(), into.data(), tile.rows, tile.columns(), importance};
  BOOST_OUTCOME_TRY(run_kernel(target.encode, call, target.tensor->name));
  const std::size_t blocks = into.size() / target.tensor->type->block_bytes;
  const std::size_t bad = first_bad_block(*target.tensor->type, into.data(), blocks);
  if (bad != blocks) return too_large(tile, target, bad);
  return ok();
}

Status measure(const Tile& tile, std::size_t index, std::span<const float> values, std::span<float> scratch) {
  const TargetWork& target = tile.work.targets[index];
  const ProfiledStep step(ProfileStep::kMeasure, tile.flight, tile.leg);
  const std::span<float> decoded = tile.work.measured_row_bytes != 0
                                       ? as_floats(tile.part(tile.leg.measured_rows, tile.columns() * sizeof(float)))
                                       : scratch.subspan(kTileBytes / sizeof(float));
  const float* weights = target.weights ? tile.leg.importance[*target.weights].data() : nullptr;
  return measure_error(
      target, {tile.rows, tile.columns(), values, tile.part(tile.leg.outputs[index], target.row_bytes), weights},
      decoded);
}

Status decode(const Tile& tile, std::span<float> values) {
  if (!tile.work.decode.kernel) return ok();
  const ProfiledStep step(ProfileStep::kDecode, tile.flight, tile.leg);
  const ggufmill_call call{tile.source().data(), values.data(), tile.rows, tile.columns(), nullptr};
  return run_kernel(tile.work.decode, call, tile.work.route->name);
}

bool is_half(const TypeInfo& type) {
  return type.block_elements == 1 &&
         (type.scales.format == ScaleFormat::kF16 || type.scales.format == ScaleFormat::kBf16);
}

// Numbers of 16 bits are as finite as what they are decoded to, and fewer bytes to look at.
std::size_t first_bad_value(const Tile& tile, std::span<const float> values) {
  const TypeInfo& type = *tile.work.route->source.type;
  return is_half(type) ? first_bad_block(type, tile.source().data(), values.size()) : first_not_finite(values);
}

Status check(const Tile& tile, std::span<const float> values, const std::vector<SourceFile>& files) {
  const ProfiledStep step(ProfileStep::kCheck, tile.flight, tile.leg);
  const std::size_t bad = first_bad_value(tile, values);
  if (bad == values.size()) return ok();
  return not_finite(tile, bad, values[bad], files);
}

Status convert(const Tile& tile, std::span<float> scratch, const std::vector<SourceFile>& files) {
  const std::span<float> values = values_of(tile, scratch);
  BOOST_OUTCOME_TRY(decode(tile, values));
  BOOST_OUTCOME_TRY(check(tile, values, files));
  for (std::size_t i = 0; i < tile.work.targets.size(); ++i) {
    if (tile.work.targets[i].kind == TargetKind::kCarry) continue;
    BOOST_OUTCOME_TRY(encode(tile, i, values));
    if (tile.work.targets[i].decode.kernel) {
      BOOST_OUTCOME_TRY(measure(tile, i, values, scratch));
    }
  }
  return ok();
}

Status load_importance(Leg& leg) {
  const Shape& shape = leg.work->route->shape;
  for (const Importance* importance : leg.work->importances) {
    BOOST_OUTCOME_TRY(auto weights, importance->weights(leg.slab.first_row / shape.dims[1]));
    if (weights.size() != shape.columns())
      return input_error("", fmt::format("tensor '{}': {} importance weights for rows of {}", leg.work->route->name,
                                         weights.size(), shape.columns()));
    leg.importance.push_back(std::move(weights));
  }
  return ok();
}

}  // namespace

std::size_t scratch_bytes(const Plan& plan) { return plan.report.error ? 2 * kTileBytes : kTileBytes; }

Status load_importance(Flight& flight) {
  for (Leg& leg : flight.legs) {
    BOOST_OUTCOME_TRY(load_importance(leg));
  }
  return ok();
}

Status convert_tile(Flight& flight, std::uint32_t tile, std::span<float> scratch,
                    const std::vector<SourceFile>& files) {
  Leg& leg = flight.leg_of(tile);
  const RouteWork& work = *leg.work;
  const TensorSource& source = work.route->source;
  if (!work.converts) {  // the one tile of a copy from the other byte order
    swap_words(*source.type, leg.source);
    return ok();
  }
  const std::uint64_t first = (tile - leg.first_tile) * work.tile_rows;
  const Tile part{flight, leg, work, first, std::min(work.tile_rows, leg.slab.rows - first)};
  if (source.big_endian) swap_words(*source.type, part.source());
  return convert(part, scratch, files);
}

}  // namespace ggufmill
