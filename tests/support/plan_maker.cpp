#include "tests/support/plan_maker.h"

#include <stdexcept>

#include "pipeline/core/importance.h"

namespace ggufmill::testing {
namespace {

constexpr std::uint64_t kAlignment = 32, kHeaderBytes = 64;

// Returns the next aligned offset at or after `end`.
std::uint64_t aligned(std::uint64_t end) { return (end + kAlignment - 1) / kAlignment * kAlignment; }

std::uint64_t importance_bytes(const TensorRecipe& recipe) {
  return recipe.importance ? recipe.shape.columns() * recipe.shape.dims[2] * sizeof(float) : 0;
}

std::uint64_t tensor_bytes(const TensorRecipe& recipe) {
  return bytes_of(type_named(recipe.from), recipe.shape.elements()).value();
}

std::shared_ptr<const Importance> importance_of(const TensorRecipe& recipe, const SourceRef& source,
                                                std::uint64_t offset) {
  if (!recipe.importance) return nullptr;
  Importance importance;
  importance.name = recipe.name;
  importance.shares = {{{source, offset, importance_bytes(recipe)}, {}}};
  importance.columns = recipe.shape.columns();
  importance.matrices = recipe.shape.dims[2];
  importance.fingerprint = recipe.name;
  return std::make_shared<const Importance>(importance);
}

class FixedSource final : public Source {
 public:
  explicit FixedSource(Model model) : model_(std::move(model)) {}
  Result<Model> open() const override { return model_; }

 private:
  Model model_;
};

// Gives every tensor its type, or omits it.
class TypesStage final : public Stage {
 public:
  explicit TypesStage(std::vector<std::string> types) : types_(std::move(types)) {}
  Result<Model> apply(Model model) const override {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < types_.size(); ++i) {
      if (types_[i].empty()) continue;
      tensors.push_back(model.tensors[i]);
      tensors.back().type = &type_named(types_[i]);
    }
    model.tensors = std::move(tensors);
    return model;
  }

 private:
  std::vector<std::string> types_;
};

class FlatSink final : public Sink {
 public:
  explicit FlatSink(std::string path) : path_(std::move(path)) {}
  Result<std::vector<OutputFile>> layout(const Model& model) const override {
    OutputFile file{path_, std::string(kHeaderBytes, 'h'), {}, kHeaderBytes};
    for (std::size_t i = 0; i < model.tensors.size(); ++i) {
      const Tensor& tensor = model.tensors[i];
      const std::uint64_t offset = aligned(file.bytes);
      const std::uint64_t bytes = bytes_of(*tensor.type, tensor.shape()).value();
      file.tensors.push_back({i, offset, bytes});
      file.bytes = offset + bytes;
    }
    return std::vector<OutputFile>{file};
  }

 private:
  std::string path_;
};

}  // namespace

Shape shape_of(std::vector<std::uint64_t> dims) {
  Shape shape;
  shape.rank = static_cast<std::uint32_t>(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) shape.dims[i] = dims[i];
  return shape;
}

std::uint64_t source_bytes(const std::vector<TensorRecipe>& tensors) {
  std::uint64_t end = kHeaderBytes, importance = 0;
  for (const TensorRecipe& recipe : tensors) {
    end = aligned(end) + tensor_bytes(recipe);
    importance += importance_bytes(recipe);
  }
  return aligned(end) + importance;
}

Model source_model(const std::vector<TensorRecipe>& tensors, SourceRef source) {
  Model model;
  model.files.push_back(source);
  std::uint64_t end = kHeaderBytes, importance = source->bytes;
  for (const TensorRecipe& recipe : tensors) importance -= importance_bytes(recipe);
  for (const TensorRecipe& recipe : tensors) {
    Tensor& tensor = model.tensors.emplace_back();
    tensor.name = recipe.name;
    tensor.type = &type_named(recipe.from);
    const Extent extent{source, aligned(end), tensor_bytes(recipe), recipe.big_endian};
    end = extent.offset + extent.bytes;
    tensor.expression = expressions::extent(*tensor.type, recipe.shape, extent).value();
    tensor.importance = importance_of(recipe, source, importance);
    importance += importance_bytes(recipe);
  }
  return model;
}

Plan plan_for(Model model, const std::vector<std::vector<std::string>>& types, const std::string& folder,
              std::uint64_t memory) {
  Job job;
  job.limits.memory = memory;
  job.source = std::make_shared<FixedSource>(std::move(model));
  for (std::size_t i = 0; i < types.size(); ++i)
    job.outputs.push_back({std::make_shared<FlatSink>(folder + "/out-" + std::to_string(i) + ".gguf"),
                           {std::make_shared<TypesStage>(types[i])}});
  Diagnostics errors;
  auto plan = make_plan(job, errors);
  if (!plan) throw std::runtime_error(render(errors.together()));
  return std::move(*plan);
}

Plan plan_of(const std::vector<TensorRecipe>& tensors, const std::string& folder, std::uint64_t memory,
             SourceRef source) {
  if (!source)
    source = std::make_shared<const SourceFile>(SourceFile{folder + "/source.gguf", source_bytes(tensors), 0, 0});
  std::vector<std::vector<std::string>> types(tensors.empty() ? 0 : tensors[0].to.size());
  for (const TensorRecipe& recipe : tensors)
    for (std::size_t i = 0; i < types.size(); ++i) types[i].push_back(recipe.to[i]);
  return plan_for(source_model(tensors, std::move(source)), types, folder, memory);
}

float importance_value(std::uint64_t matrix, std::uint64_t column) {
  return static_cast<float>(matrix + 1) + 0.25f * static_cast<float>(column);
}

std::vector<SlabRows> slabs_of(const Plan& plan, std::uint64_t slab_bytes) {
  std::vector<SlabRows> slabs;
  const std::vector<StepLayout> layouts = layouts_of(plan);
  SlabCutter cutter(plan, layouts, slab_bytes);
  while (const std::optional<SlabRows> slab = cutter.next()) slabs.push_back(*slab);
  return slabs;
}

}  // namespace ggufmill::testing
