#include "stages/huggingface/map/tensor_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "stages/huggingface/checkpoint/named_tensor.h"

namespace ggufmill::huggingface {
namespace {

Result<ExpressionRef> join(const TensorStep& step, const ExpressionRef& values, const Facts& facts,
                           std::optional<std::uint32_t> layer) {
  std::vector<ExpressionRef> parts;
  for (const std::vector<TensorStep>& steps : step.join) {
    BOOST_OUTCOME_TRY(parts.emplace_back(), apply_steps(steps, values, facts, layer));
  }
  const std::uint32_t axis = parts[0]->shape.rank == 1 ? 0 : 1;
  return expressions::concat(std::move(parts), axis);
}

}  // namespace

Result<std::vector<boost::json::value>> evaluate_arguments(const std::vector<ValueRule>& arguments,
                                                           const std::string& place, const Facts& facts,
                                                           std::optional<std::uint32_t> layer) {
  std::vector<boost::json::value> values;
  for (const ValueRule& argument : arguments) {
    std::vector<std::string> missing;
    BOOST_OUTCOME_TRY(values.emplace_back(), facts.evaluate(argument, &missing, layer));
    const boost::json::array* const list = values.back().if_array();
    const bool lacks_element =
        list && !missing.empty() && std::ranges::any_of(*list, [](const auto& each) { return each.is_null(); });
    if (values.back().is_null() || lacks_element)
      return facts.missing_values(std::move(missing), facts.folder() / "config.json", "", place);
  }
  return values;
}

Result<ExpressionRef> apply_steps(const std::vector<TensorStep>& steps, ExpressionRef values, const Facts& facts,
                                  std::optional<std::uint32_t> layer) {
  for (const TensorStep& step : steps) {
    if (!step.join.empty()) {
      BOOST_OUTCOME_TRY(values, join(step, values, facts, layer));
      continue;
    }
    BOOST_OUTCOME_TRY(const auto arguments, evaluate_arguments(step.arguments, step.place, facts, layer));
    const Shape before = values->shape;
    auto result = step.operation->apply(values, arguments);
    if (!result && values->type->is_quantized()) {  // not possible with whole blocks
      BOOST_OUTCOME_TRY(values, to_type(std::move(values), "F32"));
      result = step.operation->apply(std::move(values), arguments);
    }
    if (!result) {
      if (auto wrong = facts.wrong_argument(step.arguments, arguments, result.error())) return std::move(*wrong);
      Error error = std::move(result).error();
      error.detail = fmt::format("{} of {}, at {}", step.operation->name, describe(before), step.place);
      return error;
    }
    values = std::move(result).value();
  }
  return values;
}

}  // namespace ggufmill::huggingface
