#pragma once
// What the `do:` of a map makes of the values of a tensor.

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/expression.h"
#include "stages/huggingface/architecture.h"

namespace ggufmill::huggingface {

// The values of an operation's arguments; `layer`: what that name stands for in them. Exit code 4 for one that is not
// there, with `place`, where the map asks for it.
Result<std::vector<boost::json::value>> evaluate_arguments(const std::vector<ValueRule>& arguments,
                                                           const std::string& place, const Facts& facts,
                                                           std::optional<std::uint32_t> layer);

// The steps one after the other. The error has no tensor.
Result<ExpressionRef> apply_steps(const std::vector<TensorStep>& steps, ExpressionRef values, const Facts& facts,
                                  std::optional<std::uint32_t> layer);

}  // namespace ggufmill::huggingface
