#pragma once
// Applies the `do:` steps of a map to the values of a tensor.

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/expression.h"
#include "stages/huggingface/map/architecture.h"

namespace ggufmill::huggingface {

// Evaluates an operation's arguments; `layer` is the value of the name `layer` in them. Exit code 4 for a missing
// value, with `place`, the place in the map that asks for it.
Result<std::vector<boost::json::value>> evaluate_arguments(const std::vector<ValueRule>& arguments,
                                                           const std::string& place, const Facts& facts,
                                                           std::optional<std::uint32_t> layer);

// Applies the steps in order. Errors carry no tensor name.
Result<ExpressionRef> apply_steps(const std::vector<TensorStep>& steps, ExpressionRef values, const Facts& facts,
                                  std::optional<std::uint32_t> layer);

}  // namespace ggufmill::huggingface
