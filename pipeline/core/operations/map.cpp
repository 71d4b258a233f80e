#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/core/operation.h"
#include "pipeline/core/rounded.h"

namespace ggufmill {
namespace {

// Returns -1, 0 or 1 divided by the parameter, which is the reciprocal of the step.
float ternary(float x, float parameter) { return std::clamp(std::nearbyint(x * parameter), -1.0f, 1.0f) / parameter; }

constexpr MapFunction kMapFunctions[] = {
    {"add", [](float value, float parameter) { return value + parameter; }},
    {"exp2", [](float value, float parameter) { return std::exp2(value + parameter); }},
    {"log_negated", [](float value, float) { return static_cast<float>(std::log(-static_cast<double>(value))); }},
    {"multiply", [](float value, float parameter) { return value * parameter; }},
    {"negate_exp", [](float value, float) { return -rounded::exp(value); }},
    {"ternary", ternary},
};

class MapOperation final : public ComputingOperation {
 public:
  std::string_view name() const override { return "map"; }

 private:
  Status compute(const Expression& node, const Box& part, const InputColumns& inputs, std::byte* result,
                 RowMaterial&) const override {
    auto* const results = reinterpret_cast<float*>(result);
    for (std::uint64_t i = 0; i < part.count[0]; ++i) {
      const float value = inputs.values(0)[i];
      // NaN and infinity stay what they are, so that the result shows them: exp(-infinity) would be 0.
      results[i] = std::isfinite(value) ? node.map->apply(value, node.parameter) : value;
    }
    return ok();
  }
};

}  // namespace

const TensorOperation& map_operation() { return the_only<MapOperation>(); }

std::span<const MapFunction> map_functions() { return kMapFunctions; }

const MapFunction* find_map_function(std::string_view name) {
  const auto found = std::ranges::find(kMapFunctions, name, &MapFunction::name);
  return found == std::end(kMapFunctions) ? nullptr : found;
}

Result<ExpressionRef> expressions::map(ExpressionRef input, const MapFunction& function, float parameter) {
  if (!input->type->is_f32())
    return broken(Operation::kMap, fmt::format("the input is {}, not F32", input->type->name));
  Expression node = node_of(Operation::kMap, {std::move(input)});
  node.map = &function;
  node.parameter = parameter;
  return made(std::move(node));
}

}  // namespace ggufmill
