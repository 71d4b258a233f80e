#include "pipeline/api/tensor_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "pipeline/api/context.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kValuesAtOnce = 4 << 20;  // values held in memory
constexpr std::uint64_t kMaxValues = 64 << 20;    // limit for values returned by one call

using Take = std::function<void(std::span<const float>)>;

Status for_each_piece(const Context& context, const Tensor& tensor, const std::atomic<bool>* stop, const Take& take) {
  const std::uint64_t columns = tensor.shape().columns(), rows = tensor.shape().rows();
  const std::uint64_t at_once = std::max<std::uint64_t>(1, kValuesAtOnce / std::max<std::uint64_t>(1, columns));
  std::vector<float> values;
  for (std::uint64_t first = 0; first < rows; first += at_once) {
    const std::uint64_t count = std::min(at_once, rows - first);
    values.resize(count * columns);
    RowsOptions options;
    options.stop = stop;
    BOOST_OUTCOME_TRY(context.read_rows(
        {&tensor, first, count, &type_named("F32"), std::as_writable_bytes(std::span(values))}, options));
    take(values);
  }
  return ok();
}

}  // namespace

Result<TensorStatistics> tensor_statistics(const Context& context, const Tensor& tensor, std::size_t bins,
                                           const std::atomic<bool>* stop) {
  TensorStatistics statistics;
  statistics.count = tensor.shape().elements();
  statistics.histogram.resize(bins);
  double sum = 0;
  bool is_first = true;
  BOOST_OUTCOME_TRY(for_each_piece(context, tensor, stop, [&](std::span<const float> values) {
    for (const float value : values) {
      if (!std::isfinite(value)) {
        ++statistics.not_finite;
        continue;
      }
      statistics.zeros += value == 0;
      statistics.least = is_first ? value : std::min<double>(statistics.least, value);
      statistics.largest = is_first ? value : std::max<double>(statistics.largest, value);
      is_first = false;
      sum += value;
    }
  }));
  const std::uint64_t finite = statistics.count - statistics.not_finite;
  if (finite == 0) return statistics;
  statistics.mean = sum / static_cast<double>(finite);
  const double width = (statistics.largest - statistics.least) / static_cast<double>(bins);
  double squares = 0;
  BOOST_OUTCOME_TRY(for_each_piece(context, tensor, stop, [&](std::span<const float> values) {
    for (const float value : values) {
      if (!std::isfinite(value)) continue;
      squares += (value - statistics.mean) * (value - statistics.mean);
      const double at = width > 0 ? (value - statistics.least) / width : 0;
      ++statistics.histogram[std::min(static_cast<std::size_t>(std::max(at, 0.0)), bins - 1)];
    }
  }));
  statistics.deviation = std::sqrt(squares / static_cast<double>(finite));
  return statistics;
}

Result<std::vector<float>> tensor_values(const Context& context, const Tensor& tensor, std::uint64_t first,
                                         std::uint64_t rows) {
  const Shape& shape = tensor.shape();
  if (first > shape.rows() || rows > shape.rows() - first)
    return usage_error(fmt::format("tensor {} has {} rows; rows {} to {} do not exist", quoted_name(tensor.name),
                                   shape.rows(), first, first + rows));
  if (shape.columns() != 0 && rows > kMaxValues / shape.columns())
    return usage_error(fmt::format("{} rows of {} values are too many to show at the same time", rows, shape.columns()),
                       fmt::format("the limit is {} values", kMaxValues));
  std::vector<float> values(rows * shape.columns());
  if (values.empty()) return values;
  BOOST_OUTCOME_TRY(context.read_rows(
      {&tensor, first, rows, &type_named("F32"), std::as_writable_bytes(std::span(values))}, RowsOptions{}));
  return values;
}

}  // namespace ggufmill
