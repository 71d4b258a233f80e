#include "pipeline/graph/convert.h"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/covariance.h"
#include "pipeline/core/finite.h"
#include "pipeline/core/interleaved.h"
#include "pipeline/graph/encode_rows.h"

namespace ggufmill {
namespace {

// Some rows of a part; `first` is relative to the part's first row.
struct Tile {
  const Slab& slab;
  SlabPart& part;
  const BoundStep& step;
  const Kernels& kernels;
  std::uint64_t first;
  std::uint64_t rows;

  std::uint64_t columns() const { return step.step->expression->shape.columns(); }
  std::uint64_t row_in_tensor(std::uint64_t row) const { return part.rows.first_row + first + row; }
  std::span<std::byte> rows_of(std::span<std::byte> all, std::uint64_t row_bytes) const {
    return all.subspan(first * row_bytes, rows * row_bytes);
  }
  std::span<std::byte> values_of(const PartValues& values) const {
    return rows_of(values.bytes, values.expression->row_bytes());
  }
};

std::span<float> as_floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// Adds its own lifetime to the time of an encoding, if that is measured.
class MeasuredTime {
 public:
  explicit MeasuredTime(TargetMeasure* measure) : measure_(measure) {
    if (measure_) start_ = Clock::now();
  }
  ~MeasuredTime() {
    if (measure_) measure_->add_time(Clock::now() - start_);
  }
  MeasuredTime(const MeasuredTime&) = delete;
  MeasuredTime& operator=(const MeasuredTime&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  TargetMeasure* measure_;
  Clock::time_point start_;
};

// Returns true if a value of the step is written to an output, so that the run leaves none behind.
bool is_written(const Step& step) {
  return std::ranges::any_of(step.encodings, [](const Encoding& each) { return !each.places.empty(); });
}

// `values`: the expression in which the value has this place.
Error not_finite(const BoundStep& step, const Expression& values, std::uint64_t row, std::uint64_t column,
                 const char* what) {
  const Step& planned = *step.step;
  if (step.is_in_memory)
    return {ExitCode::kBadInput, "", fmt::format("row {}, column {}: {}", row, column, what), "",
            fmt::format("{} can hold only finite numbers", planned.encodings[0].type->name)};
  std::string detail = place_of_value(values, row, column);
  if (is_written(planned)) detail += detail.empty() ? "nothing was written" : "; nothing was written";
  return {ExitCode::kBadInput, "",
          fmt::format("tensor '{}', {} {}, column {}: {}", planned.name, planned.is_sample ? "sampled row" : "row", row,
                      column, what),
          detail,
          planned.encodings.empty()
              ? ""
              : "repair the source, or write 0 instead with `nonfinite: zero` in a pipeline file"};
}

const char* describe_nonfinite(float value) { return std::isnan(value) ? "NaN" : "infinity"; }

// Returns the help for a value that `nonfinite: keep` cannot keep.
std::string help_for_kept(const TypeInfo& type) {
  return fmt::format("{} cannot hold it: set `nonfinite: zero`, or choose another type for this tensor", type.name);
}

// `values`: of the tile; `block`: that of the encoded rows with a bad scale.
Error too_large(const Tile& tile, const BoundEncoding& encoding, std::span<const float> values, std::uint64_t block) {
  const TypeInfo& type = *encoding.encoding->type;
  const std::uint64_t first = block * type.block_elements;
  const std::uint64_t value = first + largest_of(values.subspan(first, type.block_elements));
  const std::uint64_t row = tile.row_in_tensor(value / tile.columns()), column = value % tile.columns();
  const char* const end_of_detail =
      !tile.step.is_in_memory && is_written(*tile.step.step) ? "; nothing was written" : "";
  if (encoding.encode.path && type.type_class == TypeClass::kForeign) {
    const std::string tensor = tile.step.is_in_memory ? "" : fmt::format("tensor '{}', ", *encoding.name);
    return {ExitCode::kBadInput, "",
            fmt::format("{}row {}, column {}: a value is too large for {}, or the module '{}' has a defect", tensor,
                        row, column, type.name, encoding.encode.module->name),
            fmt::format("the encoded scale is not finite{}", end_of_detail),
            fmt::format("{}; `ggufmill kernels --check {}` looks for defects of the module", help_for_too_large(type),
                        encoding.encode.path)};
  }
  if (tile.step.is_in_memory)
    return {ExitCode::kBadInput, "",
            fmt::format("row {}, column {}: a value is too large for {}", row, column, type.name), "",
            help_for_too_large(type)};
  return {ExitCode::kBadInput, "",
          fmt::format("tensor '{}', row {}, column {}: a value is too large for {}", *encoding.name, row, column,
                      type.name),
          fmt::format("the encoded {} is not finite{}", type.block_elements == 1 ? "number" : "scale", end_of_detail),
          help_for_too_large(type)};
}

// Treats a value that is not finite and that the rows assembled from it would not show, as the run treats such values.
Result<bool> replaces_hidden(const BoundStep& step, const Expression& values, std::uint64_t row, std::uint64_t column,
                             float value) {
  if (!step.looks_for_nonfinite()) return false;
  if (step.nonfinite == Nonfinite::kZero) {
    step.nonfinite_count->add_value(row, column);
    return true;
  }
  Error error = not_finite(step, values, row, column, describe_nonfinite(value));
  if (step.nonfinite == Nonfinite::kKeep) error.help = help_for_kept(*step.step->expression->type);
  return error;
}

// Reads or assembles the values of the tile's rows and converts them to the host's byte order.
Status make_values(const Tile& tile, PartValues& values) {
  const Expression& expression = *values.expression;
  const std::span<std::byte> bytes = tile.values_of(values);
  if (values.is_read) {
    if (expression.extent.big_endian) swap_words(*expression.type, expression.shape.columns(), bytes);
    return ok();
  }
  const Box box = box_of_rows(expression.shape, tile.row_in_tensor(0), tile.rows);
  NonfiniteRule rule;
  if (!tile.step.step->compared)
    rule = [&](const Expression& hidden, std::uint64_t row, std::uint64_t column, float value) {
      return replaces_hidden(tile.step, hidden, row, column, value);
    };
  return assemble(expression, box, values.read, tile.kernels, tile.step.step->name, bytes, rule);
}

// Checks values even if they are only copied. `bytes` are whole blocks (whole rows if those have headers), starting at
// byte `first_byte` of the tensor.
Status check_blocks(const BoundStep& step, std::span<std::byte> bytes, std::uint64_t first_byte) {
  const Expression& values = *step.step->expression;
  const TypeInfo& type = *values.type;
  if (!step.looks_for_nonfinite() || !type.has_scales()) return ok();
  const std::uint64_t columns = values.shape.columns(), blocks = columns / type.block_elements;
  const std::uint64_t grain = values.grain_bytes(), blocks_a_grain = type.row_header_bytes == 0 ? 1 : blocks;
  const std::size_t count = bytes.size() / grain * blocks_a_grain;
  for (std::size_t i = 0; (i = next_bad_block(type, columns, bytes, i)) != count; ++i) {
    const std::uint64_t block = first_byte / grain * blocks_a_grain + i;
    const std::uint64_t row = block / blocks, column = block % blocks * type.block_elements;
    const auto bad = bytes_of_bad_block(type, columns, bytes, i);
    if (step.nonfinite == Nonfinite::kError)
      return not_finite(step, values, row, column, describe_bad_block(type, bad.data()));
    type.block_elements == 1 ? step.nonfinite_count->add_value(row, column)
                             : step.nonfinite_count->add_block(row, column);
    if (step.nonfinite == Nonfinite::kZero) std::ranges::fill(bad, std::byte{0});
  }
  return ok();
}

class TileConversion {
 public:
  TileConversion(const Tile& tile, std::span<float> scratch) : tile_(tile), step_(tile.step), scratch_(scratch) {}

  Status run() {
    BOOST_OUTCOME_TRY(make_values(tile_, tile_.part.values));
    if (step_.step->compared) return compare();
    if (!step_.computes) {
      const ProfiledStep profiled(ProfileStep::kCheck, tile_.slab, tile_.part);
      BOOST_OUTCOME_TRY(
          check_blocks(step_, bytes(), tile_.row_in_tensor(0) * tile_.part.values.expression->row_bytes()));
      swap();
      return ok();
    }
    if (step_.nonfinite != Nonfinite::kError) {
      BOOST_OUTCOME_TRY(
          check_blocks(step_, bytes(), tile_.row_in_tensor(0) * tile_.part.values.expression->row_bytes()));
    }
    const std::span<float> values = place_of_values();
    BOOST_OUTCOME_TRY(decode(step_.decode, bytes(), values));
    BOOST_OUTCOME_TRY(check(values));
    for (std::size_t i = 0; i < step_.encodings.size(); ++i) {
      if (!converts(step_.encodings[i].layout->work)) continue;
      BOOST_OUTCOME_TRY(encode(i, values));
      // Values that are kept although they are not finite have no defined error.
      if (step_.encodings[i].layout->is_measured && first_not_finite(values) == values.size()) {
        BOOST_OUTCOME_TRY(measure(i, values));
      }
    }
    swap();
    return ok();
  }

 private:
  // Values decoded and compared at a time. Together with the original values they fit into a core's L1 or L2 cache.
  static constexpr std::uint64_t kAtOnce = 8 << 10;

  std::span<std::byte> bytes() const { return tile_.values_of(tile_.part.values); }
  std::span<std::byte> compared_bytes() const { return tile_.values_of(tile_.part.compared); }

  // Returns the memory that contains, or will receive, the F32 values of the tile.
  std::span<float> place_of_values() const {
    const std::uint64_t row_bytes = tile_.columns() * sizeof(float);
    if (!step_.decode.kernel) return as_floats(bytes());
    if (const auto encoding = step_.layout->f32_encoding())
      return as_floats(tile_.rows_of(tile_.part.encoded[*encoding], row_bytes));
    if (!tile_.part.long_rows.empty()) return as_floats(tile_.rows_of(tile_.part.long_rows, row_bytes));
    return scratch_.first(tile_.rows * tile_.columns());
  }

  // Returns memory for a second set of values.
  std::span<float> second_place() const {
    if (!tile_.part.measured_rows.empty())
      return as_floats(tile_.rows_of(tile_.part.measured_rows, tile_.columns() * sizeof(float)));
    return scratch_.subspan(kTileBytes / sizeof(float));
  }

  Status decode(const KernelChoice& kernel, std::span<const std::byte> from, std::span<float> into) const {
    if (!kernel.kernel) return ok();
    const ProfiledStep profiled(ProfileStep::kDecode, tile_.slab, tile_.part);
    return run_kernel(kernel, {from.data(), into.data(), tile_.rows, tile_.columns(), nullptr}, step_.step->name);
  }

  Status check(std::span<const float> values) const {
    if (!step_.looks_for_nonfinite()) return ok();
    const ProfiledStep profiled(ProfileStep::kCheck, tile_.slab, tile_.part);
    const TypeInfo& type = *step_.step->expression->type;
    const std::size_t bad = first_beyond(type, bytes().data(), values, exponent_limit_of_encodings());
    if (bad == values.size()) return ok();
    if (std::isfinite(values[bad])) return beyond_blocks(values, bad);
    const std::uint64_t row = tile_.row_in_tensor(bad / tile_.columns()), column = bad % tile_.columns();
    if (type.scales().format == FieldFormat::kF64 &&
        std::isfinite(reinterpret_cast<const double*>(bytes().data())[bad]))
      return too_large_for_f32(row, column);
    Error error = not_finite(step_, *step_.step->expression, row, column, describe_nonfinite(values[bad]));
    if (step_.nonfinite != Nonfinite::kKeep) return error;
    for (const BoundEncoding& encoding : step_.encodings)
      if (encoding.encoding->type->block_elements != 1) {
        error.help = help_for_kept(*encoding.encoding->type);
        return error;
      }
    return ok();
  }

  std::uint16_t exponent_limit_of_encodings() const {
    std::uint16_t limit = std::numeric_limits<std::uint16_t>::max();
    for (const BoundEncoding& encoding : step_.encodings)
      if (converts(encoding.layout->work)) limit = std::min(limit, exponent_limit(encoding.rows_type()));
    return std::min(limit, exponent_limit(type_named("F32")));
  }

  // The error for a value that is finite, but that the blocks of an encoding cannot represent.
  Error beyond_blocks(std::span<const float> values, std::size_t value) const {
    const std::uint16_t limit = exponent_limit_of_encodings();
    const auto encoding = std::ranges::find_if(step_.encodings, [&](const BoundEncoding& each) {
      return converts(each.layout->work) && exponent_limit(each.rows_type()) == limit;
    });
    Error error = too_large(tile_, *encoding, values, value / encoding->rows_type().block_elements);
    if (!step_.is_in_memory && is_written(*step_.step))
      error.detail = "no block of this type reaches it; nothing was written";
    return error;
  }

  // The error for a number of 64 bits, which is rounded to 32 bits before it is encoded.
  Error too_large_for_f32(std::uint64_t row, std::uint64_t column) const {
    const TypeInfo& f32 = type_named("F32");
    const std::string place = fmt::format("row {}, column {}: a value is too large for F32", row, column);
    if (step_.is_in_memory) return {ExitCode::kBadInput, "", place, "", help_for_too_large(f32)};
    return {ExitCode::kBadInput, "", fmt::format("tensor '{}', {}", step_.step->name, place),
            is_written(*step_.step) ? "nothing was written" : "", help_for_too_large(f32)};
  }

  Status encode(std::size_t index, std::span<const float> values) const {
    const BoundEncoding& encoding = step_.encodings[index];
    const TypeInfo& type = encoding.rows_type();
    const MeasuredTime time(encoding.measure);
    const ProfiledStep profiled(ProfileStep::kEncode, tile_.slab, tile_.part);
    const std::span<std::byte> into = encoded_rows(index);
    if (encoding.layout->work == Work::kDecode) {  // already decoded in place, unless the values were F32
      if (values.data() != reinterpret_cast<const float*>(into.data()))
        std::ranges::copy(std::as_bytes(values), into.begin());
      return ok();
    }
    const KernelCall call{values.data(), into.data(), tile_.rows, tile_.columns(), weights(encoding.importance)};
    if (const Status made = encode_rows(encoding, call, weights(encoding.weights)); !made)
      return failed(made.error(), type);
    if (const Status chosen = choose_levels(encoding, values, into); !chosen) return failed(chosen.error(), type);
    BOOST_OUTCOME_TRY(check_scales(encoding, values, into));
    if (encoding.encoding->type->plain) interleave(index);
    return ok();
  }

  // Replaces the levels of encoded rows, if the encoding has a metric that can be used. With held-out vectors, those of
  // kLevelRows rows remain if the loss would not be less.
  Status choose_levels(const BoundEncoding& encoding, std::span<const float> values, std::span<std::byte> rows) const {
    if (!encoding.metric) return ok();
    const std::shared_ptr<Metric>& metric = tile_.slab.metrics[*encoding.metric];
    if (!metric) return ok();
    if (metric->vectors.empty()) {
      if (metric->is_usable) choose_levels(encoding, *metric, values, rows);
      return ok();
    }
    BOOST_OUTCOME_TRY(const std::vector<HalfLosses> start, losses(encoding, *metric, values, rows));
    if (!metric->is_usable) return record(encoding, *metric, start, start);
    choose_levels(encoding, *metric, values, rows);
    BOOST_OUTCOME_TRY(std::vector<HalfLosses> chosen, losses(encoding, *metric, values, rows));
    for (std::size_t group = 0; group < start.size(); ++group) {
      if (chosen[group].worst_share_of(start[group]) < 1) continue;
      chosen[group] = start[group];
      BOOST_OUTCOME_TRY(encode_rows(encoding, group_of(encoding, values, rows, group), weights(encoding.weights)));
    }
    return record(encoding, *metric, start, chosen);
  }

  // Returns what encodes group `group` of kLevelRows rows.
  KernelCall group_of(const BoundEncoding& encoding, std::span<const float> values, std::span<std::byte> rows,
                      std::uint64_t group) const {
    const std::uint64_t first = group * kLevelRows, count = std::min(kLevelRows, tile_.rows - first);
    return {values.data() + first * tile_.columns(), rows.data() + first * encoding.layout->row_bytes, count,
            tile_.columns(), weights(encoding.importance)};
  }

  // Returns the losses of each group of rows.
  Result<std::vector<HalfLosses>> losses(const BoundEncoding& encoding, const Metric& metric,
                                         std::span<const float> values, std::span<std::byte> rows) const {
    std::vector<HalfLosses> all;
    for (std::uint64_t group = 0; group * kLevelRows < tile_.rows; ++group) {
      const KernelCall its = group_of(encoding, values, rows, group);
      auto* const decoded = reinterpret_cast<float*>(memory_of(group));
      BOOST_OUTCOME_TRY(run_kernel(encoding.decode, {its.dst, decoded, its.rows, its.cols, nullptr}, *encoding.name));
      ggufmill_loss_call call{};
      call.rows = its.rows;
      call.cols = its.cols;
      call.weights = static_cast<const float*>(its.src);
      call.decoded = decoded;
      call.memory = decoded + kLevelRows * its.cols;
      all.push_back(losses_of(tile_.kernels.covariance(), call, metric.vectors));
    }
    return all;
  }

  Status record(const BoundEncoding& encoding, const Metric& metric, const std::vector<HalfLosses>& start,
                const std::vector<HalfLosses>& chosen) const {
    if (!encoding.measure) return ok();
    const double shrink = metric.is_usable ? metric.shrink : 0;
    for (std::size_t group = 0; group < start.size(); ++group) {
      const std::uint64_t rows = std::min(kLevelRows, tile_.rows - group * kLevelRows);
      const bool is_chosen = chosen[group].worst_share_of(start[group]) < 1;
      encoding.measure->add_loss({start[group].sum(), chosen[group].sum(), rows, is_chosen ? 0 : rows, shrink, shrink});
    }
    return ok();
  }

  // Memory to choose the levels of the tile's rows in, from those of a group on.
  std::byte* memory_of(std::uint64_t group) const {
    const std::uint64_t bytes = tile_.columns() * GGUFMILL_LEVEL_BYTES_PER_COLUMN;
    return tile_.part.chosen_rows.subspan((tile_.first + group * kLevelRows) * bytes).data();
  }

  void choose_levels(const BoundEncoding& encoding, const Metric& metric, std::span<const float> values,
                     std::span<std::byte> rows) const {
    const ggufmill_level_call call{encoding.rows_type().id,
                                   encoding.encoding->encoder.sweeps,
                                   tile_.rows,
                                   tile_.columns(),
                                   values.data(),
                                   rows.data(),
                                   &metric.values,
                                   memory_of(0)};
    tile_.kernels.covariance().choose_levels(&call);
  }

  // Fails if values were too large for the scales of their blocks.
  Status check_scales(const BoundEncoding& encoding, std::span<const float> values,
                      std::span<const std::byte> rows) const {
    const TypeInfo& type = encoding.rows_type();
    if (!type.has_scales()) return ok();
    const std::size_t blocks = tile_.rows * (tile_.columns() / type.block_elements);
    for (std::size_t i = 0; (i = next_bad_block(type, tile_.columns(), rows, i)) != blocks; ++i) {
      const bool kept = step_.nonfinite == Nonfinite::kKeep && type.block_elements == 1 && !std::isfinite(values[i]);
      if (!kept) return too_large(tile_, encoding, values, i);
    }
    return ok();
  }

  // Returns the rows of an encoding, before they are interleaved.
  std::span<std::byte> encoded_rows(std::size_t index) const {
    const auto& rows = tile_.part.plain[index].empty() ? tile_.part.encoded[index] : tile_.part.plain[index];
    return tile_.rows_of(rows, step_.encodings[index].layout->row_bytes);
  }

  // A tile consists of groups of rows.
  void interleave(std::size_t index) const {
    const TypeInfo& type = *step_.encodings[index].encoding->type;
    const std::uint64_t row_bytes = step_.encodings[index].layout->row_bytes;
    const std::span<const std::byte> rows = encoded_rows(index);
    const std::span<std::byte> into = tile_.rows_of(tile_.part.encoded[index], row_bytes);
    std::vector<const std::byte*> group(type.group_rows);
    for (std::uint64_t first = 0; first < tile_.rows; first += type.group_rows) {
      for (std::uint64_t k = 0; k < group.size(); ++k) group[k] = rows.data() + (first + k) * row_bytes;
      Interleaving::of(type).interleave(group, tile_.columns() / type.block_elements, into.data() + first * row_bytes);
    }
  }

  // Names the rows if there is no tensor to name.
  Error failed(Error error, const TypeInfo& type) const {
    if (!step_.is_in_memory || error.code != ExitCode::kBadInput) return error;
    error.what = fmt::format("rows {} to {}: values are too large for {}", tile_.row_in_tensor(0),
                             tile_.row_in_tensor(tile_.rows - 1), type.name);
    error.detail.clear();
    return error;
  }

  const float* weights(const std::optional<std::size_t>& importance) const {
    return importance ? tile_.part.importance[*importance]->values.data() : nullptr;
  }

  // Decodes the encoded values and adds their error to the measure.
  Status measure(std::size_t index, std::span<const float> values) const {
    const BoundEncoding& encoding = step_.encodings[index];
    const ProfiledStep profiled(ProfileStep::kMeasure, tile_.slab, tile_.part);
    const std::span<const std::byte> encoded = encoded_rows(index);
    // The tile's rows that belong to one matrix, if matrices are measured separately.
    const std::uint64_t matrix_rows = encoding.measure->matrix_rows();
    for (std::uint64_t first = 0; first < tile_.rows;) {
      const std::uint64_t place = tile_.row_in_tensor(first), left = tile_.rows - first;
      const std::uint64_t rows = matrix_rows ? std::min(left, matrix_rows - place % matrix_rows) : left;
      BOOST_OUTCOME_TRY(const DifferenceSums sums, difference_of(encoding, encoded, values, first, rows));
      encoding.measure->add_error(sums, place, rows);
      first += rows;
    }
    return ok();
  }

  // Returns the error of some rows of the tile.
  Result<DifferenceSums> difference_of(const BoundEncoding& encoding, std::span<const std::byte> encoded,
                                       std::span<const float> values, std::uint64_t first, std::uint64_t count) const {
    const std::uint64_t columns = tile_.columns(), step = std::max<std::uint64_t>(kAtOnce / columns, 1);
    DifferenceSums sums;
    for (std::uint64_t row = first; row < first + count; row += step) {
      const std::uint64_t rows = std::min(step, first + count - row);
      const std::span<float> decoded = second_place().first(rows * columns);
      const KernelCall call{encoded.data() + row * encoding.layout->row_bytes, decoded.data(), rows, columns, nullptr};
      BOOST_OUTCOME_TRY(run_kernel(encoding.decode, call, *encoding.name));
      sums.add_rows(values.subspan(row * columns, rows * columns), decoded, columns, weights(encoding.weights));
    }
    return sums;
  }

  // Swaps the byte order of the encodings. Runs last, since other encodings may be made from the same values.
  void swap() const {
    for (std::size_t i = 0; i < step_.encodings.size(); ++i) {
      const BoundEncoding& encoding = step_.encodings[i];
      if (!encoding.encoding->big_endian) continue;
      const std::span<std::byte> into = tile_.rows_of(tile_.part.encoded[i], encoding.layout->row_bytes);
      if (encoding.layout->work == Work::kSwap) std::ranges::copy(bytes(), into.begin());
      swap_words(*encoding.encoding->type, tile_.columns(), into);
    }
  }

  // Adds the difference between the values and those they are compared with to the step's measure.
  Status compare() const {
    BOOST_OUTCOME_TRY(make_values(tile_, tile_.part.compared));
    const bool same =
        step_.step->expression->type == step_.step->compared->type && std::ranges::equal(bytes(), compared_bytes());
    if (!same) *step_.differs = true;
    if (!step_.computes) return ok();
    const ProfiledStep profiled(ProfileStep::kMeasure, tile_.slab, tile_.part);
    const std::span<float> a = place_of_values();
    BOOST_OUTCOME_TRY(decode(step_.decode, bytes(), a));
    std::span<const float> b = a;
    if (!same && !step_.decode_compared.kernel) b = as_floats(compared_bytes());
    if (!same && step_.decode_compared.kernel) {
      const std::span<float> decoded = second_place().first(a.size());
      BOOST_OUTCOME_TRY(decode(step_.decode_compared, compared_bytes(), decoded));
      b = decoded;
    }
    DifferenceSums sums;
    sums.add_rows(a, b, tile_.columns(), step_.step->importance ? tile_.part.importance[0]->values.data() : nullptr);
    step_.measure->add_error(sums, tile_.row_in_tensor(0), tile_.rows);
    return ok();
  }

  const Tile& tile_;
  const BoundStep& step_;
  std::span<float> scratch_;
};

// Checks one tile of a copy.
Status check_copy(Slab& slab, SlabPart& part, std::uint64_t first) {
  const ProfiledStep profiled(ProfileStep::kCheck, slab, part);
  const Expression& expression = *part.values.expression;
  const std::uint64_t grain = expression.grain_bytes();
  // A tile starts at the first block (or row) at or after its first byte; one that started earlier belongs to the tile
  // before.
  const std::uint64_t begin = ceil_div(first, grain) * grain;
  const std::uint64_t end = std::min(ceil_div(first + kTileBytes, grain) * grain, part.rows.bytes);
  if (begin >= end) return ok();
  const std::span<std::byte> bytes = part.values.bytes.subspan(begin, end - begin);
  if (expression.extent.big_endian) swap_words(*expression.type, expression.shape.columns(), bytes);
  return check_blocks(*part.step, bytes, part.rows.first_byte + begin);
}

std::span<float> as_floats(const Buffer& buffer) {
  return {reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float)};
}

class PlainConverter final : public Converter {
 public:
  PlainConverter(std::span<const BoundStep> steps, const Kernels& kernels, RunState& state)
      : kernels_(kernels), state_(state), scratch_(scratch_bytes(steps)) {}

  void submit(Slab& slab, std::function<void()> done) noexcept override {
    for (std::uint32_t tile = 0; tile < slab.tiles && !state_.stopped(); ++tile)
      if (!state_.guard(slab.ordinal, RunState::kTiles + tile,
                        [&] { return convert_tile(slab, tile, as_floats(scratch_), kernels_); }))
        break;
    done();
  }

  void run(std::function<void()> work) noexcept override { work(); }
  const ForEach& for_each() const override { return for_each_; }

 private:
  const ForEach for_each_ = [](std::uint64_t count, const std::function<void(std::uint64_t)>& each) {
    for (std::uint64_t i = 0; i < count; ++i) each(i);
  };
  const Kernels& kernels_;
  RunState& state_;
  const Buffer scratch_;
};

class ParallelConverter final : public Converter {
 public:
  ParallelConverter(std::span<const BoundStep> steps, const Kernels& kernels, RunState& state)
      : kernels_(kernels), state_(state), scratch_([bytes = scratch_bytes(steps)] { return Buffer(bytes); }) {}
  ~ParallelConverter() override {
    // TBB counts a task even if it could not be created, so wait() would never return. All slabs are done by now.
    if (lacked_memory_)
      static_cast<void>(tasks_.release());
    else
      tasks_->wait();
  }

  void submit(Slab& slab, std::function<void()> done) noexcept override {
    if (slab.tiles == 0) return done();
    slab.converted = std::move(done);
    const std::uint64_t ordinal = slab.ordinal;
    const std::uint32_t tiles = slab.tiles;  // the slab is destroyed after its last tile
    for (std::uint32_t tile = 0; tile < tiles; ++tile) {
      const auto start = [&] { tasks_->run([this, &slab, tile] { convert(slab, tile); }); };
      if (state_.guard(ordinal, RunState::kTiles + tile, start)) continue;
      lacked_memory_ = true;
      end_tile(slab);
    }
  }

  void run(std::function<void()> work) noexcept override {
    if (state_.guard(0, RunState::kTiles, [&] { tasks_->run(work); })) return;
    lacked_memory_ = true;
    work();
  }
  const ForEach& for_each() const override { return for_each_; }

 private:
  const ForEach for_each_ = [](std::uint64_t count, const std::function<void(std::uint64_t)>& each) {
    tbb::parallel_for(std::uint64_t{0}, count, each);
  };

  void convert(Slab& slab, std::uint32_t tile) noexcept {
    if (!state_.skips(slab.ordinal))
      state_.guard(slab.ordinal, RunState::kTiles + tile,
                   [&] { return convert_tile(slab, tile, as_floats(scratch_.local()), kernels_); });
    end_tile(slab);
  }

  static void end_tile(Slab& slab) {
    if (slab.tiles_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const std::function<void()> done = std::move(slab.converted);
    done();
  }

  const Kernels& kernels_;
  RunState& state_;
  tbb::enumerable_thread_specific<Buffer> scratch_;
  std::unique_ptr<tbb::task_group> tasks_ = std::make_unique<tbb::task_group>();  // its destructor may throw
  std::atomic<bool> lacked_memory_{false};
};

}  // namespace

std::string place_of_value(const Expression& expression, std::uint64_t row, std::uint64_t column) {
  const Expression* values = &expression;
  while (values->operation == Operation::kCast) values = values->inputs[0].get();  // its blocks may be smaller
  Box box = box_of_rows(values->shape, row, 1);
  box.first[0] = column / values->type->block_elements * values->type->block_elements;
  box.count[0] = values->type->block_elements;
  const std::vector<ByteRange> ranges = ranges_of(*values, box);
  return ranges.empty() ? "" : fmt::format("in {} at byte {:#x}", ranges[0].source->path, ranges[0].offset);
}

std::size_t scratch_bytes(std::span<const BoundStep> steps) {
  std::size_t bytes = 0;
  for (const BoundStep& step : steps) bytes = std::max<std::size_t>(bytes, step.layout->scratch_bytes());
  return bytes;
}

Status convert_tile(Slab& slab, std::uint32_t tile, std::span<float> scratch, const Kernels& kernels) {
  SlabPart& part = slab.part_of(tile);
  const std::uint64_t index = tile - part.first_tile;
  if (part.rows.rows == 0) return check_copy(slab, part, index * kTileBytes);
  const std::uint64_t first = index * part.step->tile_rows;
  const Tile rows{slab, part, *part.step, kernels, first, std::min(part.step->tile_rows, part.rows.rows - first)};
  return TileConversion(rows, scratch).run();
}

std::unique_ptr<Converter> make_plain_converter(std::span<const BoundStep> steps, const Kernels& kernels,
                                                RunState& state) {
  return std::make_unique<PlainConverter>(steps, kernels, state);
}

std::unique_ptr<Converter> make_parallel_converter(std::span<const BoundStep> steps, const Kernels& kernels,
                                                   RunState& state) {
  return std::make_unique<ParallelConverter>(steps, kernels, state);
}

}  // namespace ggufmill
