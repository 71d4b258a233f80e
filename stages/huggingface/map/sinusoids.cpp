#include "stages/huggingface/map/computed_tensors.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "pipeline/core/rounded.h"
#include "stages/huggingface/checkpoint/json_values.h"

namespace ggufmill::huggingface {

Result<ExpressionRef> sinusoids(std::span<const boost::json::value> arguments) {
  constexpr std::int64_t kMaxPositions = 32'768, kMaxValues = 16'384, kMax = 1 << 24;  // positions: as sin() allows
  const std::int64_t positions = whole_number(arguments[0]).value_or(0),
                     values = whole_number(arguments[1]).value_or(0);
  if (positions < 1 || positions > kMaxPositions || values < 4 || values > kMaxValues || values % 2 != 0 ||
      positions * values > kMax)
    return input_error({}, fmt::format("{} positions of {} values; expected at most {} positions, an even number of at "
                                       "most {} values, and {} values in all",
                                       shown(arguments[0]), shown(arguments[1]), kMaxPositions, kMaxValues, kMax));
  const auto half = static_cast<std::size_t>(values / 2);
  const auto step = static_cast<float>(-std::log(10000.0) / static_cast<double>(half - 1));
  const auto count = static_cast<std::size_t>(positions) * half;
  std::vector<float> table(2 * count);
  for (std::size_t i = 0; i < half; ++i) {
    const float frequency = rounded::exp(step * static_cast<float>(i));
    for (std::size_t at = i; at < count; at += half) {
      const float angle = static_cast<float>(at / half) * frequency;
      table[at + at / half * half] = rounded::sin(angle);
      table[at + (at / half + 1) * half] = rounded::cos(angle);
    }
  }
  return expressions::constant(Shape{2, {2 * half, static_cast<std::uint64_t>(positions), 1, 1}}, std::move(table));
}

}  // namespace ggufmill::huggingface
