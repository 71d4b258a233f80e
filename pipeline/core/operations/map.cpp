#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

// Torch's exponential for float32 vectors. Its results are not always the nearest float: it uses Sleef's expf, with an
// error of up to 1.0 units in the last place, computed with fused multiply-adds. Source of the method and the
// constants: SLEEF, sleefsp.c, xexpf (Boost Software License).
float sleef_exp(float x) {
  if (x < -104) return 0;
  if (x > 104) return INFINITY;
  const float q = std::nearbyintf(x * 1.442695040888963407359924681001892137426645954152985934135449406931f);
  float s = std::fmaf(q, -0.693145751953125f, x);
  s = std::fmaf(q, -1.428606765330187045e-06f, s);
  float u = 0.000198527617612853646278381f;
  for (const float c : {0.00139304355252534151077271f, 0.00833336077630519866943359f, 0.0416664853692054748535156f,
                        0.166666671633720397949219f, 0.5f})
    u = std::fmaf(u, s, c);
  u = 1.0f + std::fmaf(s * s, u, s);
  // Scales by two factors, so that neither exceeds the exponent range.
  const int power = static_cast<int>(q), half = power >> 1;
  return u * std::ldexp(1.0f, half) * std::ldexp(1.0f, power - half);
}

constexpr MapFunction kMapFunctions[] = {
    {"add", [](float value, float parameter) { return value + parameter; }},
    {"log_negated", [](float value, float) { return static_cast<float>(std::log(-static_cast<double>(value))); }},
    {"multiply", [](float value, float parameter) { return value * parameter; }},
    {"negate_exp", [](float value, float) { return -sleef_exp(value); }},
};

class MapOperation final : public ComputingOperation {
 public:
  std::string_view name() const override { return "map"; }

 private:
  Status compute(const Expression& node, const Box& part, const InputColumns& inputs, std::byte* result,
                 RowMaterial&) const override {
    auto* const results = reinterpret_cast<float*>(result);
    for (std::uint64_t i = 0; i < part.count[0]; ++i) results[i] = node.map->apply(inputs.values(0)[i], node.parameter);
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
