#include "tests/support/plan_maker.h"

namespace ggufmill::testing {
namespace {

constexpr std::uint64_t kAlignment = 32;

// The next aligned place after `end` bytes.
std::uint64_t aligned(std::uint64_t end) { return (end + kAlignment - 1) / kAlignment * kAlignment; }

Route add_source(Plan& plan, const TensorRecipe& recipe) {
  SourceFile& file = plan.source.files[0];
  Tensor tensor;
  tensor.name = recipe.name;
  tensor.shape = recipe.shape;
  tensor.type = &type_named(recipe.from);
  const std::uint64_t bytes = bytes_of(*tensor.type, recipe.shape.elements()).value();
  tensor.source = {tensor.type, 0, aligned(file.bytes), bytes, recipe.big_endian};
  tensor.importance = recipe.importance;
  file.bytes = tensor.source.offset + bytes;
  plan.source.tensors.push_back(tensor);
  return {tensor.source, recipe.shape, recipe.name, {}};
}

void add_target(Plan& plan, Route& route, std::uint32_t output, const std::string& type) {
  PlannedOutput& planned = plan.outputs[output];
  OutputFile& file = planned.files[0];
  Tensor tensor = plan.source.tensors.back();
  tensor.type = &type_named(type);
  const std::uint64_t bytes = bytes_of(*tensor.type, tensor.shape.elements()).value();
  const Target target{output, 0, planned.model.tensors.size(), aligned(file.bytes)};
  file.tensors.push_back({target.tensor, target.offset, bytes});
  file.bytes = target.offset + bytes;
  planned.model.tensors.push_back(tensor);
  route.targets.push_back(target);
}

}  // namespace

Shape shape_of(std::vector<std::uint64_t> dims) {
  Shape shape;
  shape.rank = static_cast<std::uint32_t>(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) shape.dims[i] = dims[i];
  return shape;
}

Plan plan_of(const std::vector<TensorRecipe>& tensors, const std::string& folder, std::uint64_t memory) {
  Plan plan;
  plan.limits.memory = memory;
  plan.source.files.push_back({folder + "/source.gguf", 64});
  plan.outputs.resize(tensors.empty() ? 0 : tensors[0].to.size());
  for (std::size_t i = 0; i < plan.outputs.size(); ++i)
    plan.outputs[i].files.push_back({folder + "/out-" + std::to_string(i) + ".gguf", std::string(64, 'h'), {}, 64});
  for (const TensorRecipe& recipe : tensors) {
    Route route = add_source(plan, recipe);
    for (std::uint32_t i = 0; i < plan.outputs.size(); ++i)
      if (!recipe.to[i].empty()) add_target(plan, route, i, recipe.to[i]);
    plan.routes.push_back(std::move(route));
  }
  return plan;
}

Result<std::vector<float>> SteppedImportance::weights(std::uint64_t matrix) const {
  std::vector<float> weights(columns_);
  for (std::uint64_t i = 0; i < columns_; ++i)
    weights[i] = static_cast<float>(matrix + 1) + 0.25f * static_cast<float>(i);
  return weights;
}

}  // namespace ggufmill::testing
