#include "tests/pipeline/engine_fixture.h"

#include <cstring>
#include <fstream>
#include <stdexcept>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/importance.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/plan/slabs.h"
#include "tests/support/files.h"
#include "tests/support/synth.h"

namespace ggufmill::testing {
namespace {

using Bytes = std::vector<std::byte>;

void call(const KernelChoice& choice, const KernelCall& arguments) {
  if (call_kernel(choice, arguments) != GGUFMILL_OK) throw std::runtime_error("kernel failed");
}

std::vector<float> weights_of(const TensorRecipe& recipe, std::uint64_t matrix) {
  std::vector<float> weights(recipe.shape.columns());
  for (std::uint64_t i = 0; i < weights.size(); ++i) weights[i] = importance_value(matrix % recipe.shape.dims[2], i);
  return weights;
}

// Encodes the matrices of a tensor in order, each with its importance.
Bytes encoded(const TensorRecipe& recipe, const TypeInfo& type, const std::vector<float>& values) {
  Bytes bytes(bytes_of(type, values.size()).value());
  if (values.empty()) return bytes;
  if (type.is_f32()) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  const KernelChoice& choice = *reference_kernels().encode(type.id);
  const std::uint64_t columns = recipe.shape.columns(), rows = recipe.shape.dims[1];
  for (std::uint64_t matrix = 0; matrix < recipe.shape.rows() / rows; ++matrix) {
    std::vector<float> weights;
    if (recipe.importance && (choice.kernel->flags & (GGUFMILL_ACCEPTS_IMPORTANCE | GGUFMILL_NEEDS_IMPORTANCE)))
      weights = weights_of(recipe, matrix);
    const std::uint64_t first = matrix * rows * columns;
    call(choice, {values.data() + first, bytes.data() + first / type.block_elements * type.block_bytes, rows, columns,
                  weights.empty() ? nullptr : weights.data()});
  }
  return bytes;
}

std::vector<float> decoded(const TensorRecipe& recipe, const Bytes& bytes) {
  std::vector<float> values(recipe.shape.elements());
  if (values.empty()) return values;
  const TypeInfo& type = type_named(recipe.from);
  if (type.is_f32()) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  call(*reference_kernels().decode(type.id),
       {bytes.data(), values.data(), recipe.shape.rows(), recipe.shape.columns(), nullptr});
  return values;
}

// Returns the source bytes of a tensor in the host's byte order.
Bytes tensor_bytes(const std::vector<TensorRecipe>& tensors, std::size_t index) {
  std::vector<float> values(tensors[index].shape.elements());
  synth::fill(synth::Distribution::kNormal, index + 1, 0, values);
  return encoded(tensors[index], type_named(tensors[index].from), values);
}

void put(std::string& file, std::uint64_t offset, const Bytes& bytes) {
  if (!bytes.empty()) std::memcpy(file.data() + offset, bytes.data(), bytes.size());
}

// Returns the complete source file.
std::string source_file(const std::vector<TensorRecipe>& tensors) {
  const auto described = std::make_shared<const SourceFile>(SourceFile{"", source_bytes(tensors), 0, 0});
  const Model model = source_model(tensors, described);
  std::string file(described->bytes, '\0');
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Bytes bytes = tensor_bytes(tensors, i);
    if (tensors[i].big_endian) swap_words(type_named(tensors[i].from), 0, bytes);
    put(file, model.tensors[i].expression->extent.offset, bytes);
    if (!tensors[i].importance) continue;
    for (std::uint64_t matrix = 0; matrix < tensors[i].shape.dims[2]; ++matrix) {
      const std::vector<float> weights = weights_of(tensors[i], matrix);
      const auto all = std::as_bytes(std::span(weights));
      put(file, model.tensors[i].importance->ranges(matrix)[0].sums.offset, Bytes(all.begin(), all.end()));
    }
  }
  return file;
}

}  // namespace

const Kernels& reference_kernels() {
  static const std::shared_ptr<const Kernels> kernels = Kernels::load({{}, "reference"}).value();
  return *kernels;
}

EngineOptions options_for(EngineKind engine) {
  EngineOptions options;
  options.engine = engine;
  return options;
}

EngineFixture::EngineFixture(const std::vector<TensorRecipe>& tensors, std::uint64_t memory) : tensors_(tensors) {
  write_text(folder_.file("source.gguf"), source_file(tensors_));
  make_plan(memory);
}

void EngineFixture::make_plan(std::uint64_t memory) {
  plan = plan_of(tensors_, folder_.path(), memory, InputFile::open(folder_.file("source.gguf")).value()->describe());
}

std::uint64_t EngineFixture::source_offset(std::size_t tensor) const {
  return source_model(tensors_, plan.sources[0]).tensors[tensor].expression->extent.offset;
}

void EngineFixture::patch_source(std::size_t tensor, std::uint64_t offset, const std::string& bytes) {
  std::fstream file(folder_.file("source.gguf"), std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(source_offset(tensor) + offset));
  if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) throw std::runtime_error("patch failed");
  file.close();
  make_plan(memory_budget(plan.limits));
}

std::vector<std::string> EngineFixture::names() const { return names_in(folder_.path()); }

std::vector<std::string> EngineFixture::take_outputs() const {
  std::vector<std::string> outputs;
  for (const PlannedOutput& output : plan.outputs) {
    outputs.push_back(read_text(output.files[0].path));
    fs::remove(output.files[0].path);
  }
  return outputs;
}

std::vector<std::string> EngineFixture::expected_outputs() const {
  std::vector<std::string> outputs;
  for (std::size_t o = 0; o < plan.outputs.size(); ++o) {
    const OutputFile& file = plan.outputs[o].files[0];
    outputs.emplace_back(file.bytes, '\0');
    outputs[o].replace(0, file.header.size(), file.header);
    auto placement = file.tensors.begin();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].to[o].empty()) continue;
      const Bytes bytes = tensor_bytes(tensors_, i);
      const bool copied = tensors_[i].to[o] == tensors_[i].from;
      put(outputs[o], placement++->offset,
          copied ? bytes : encoded(tensors_[i], type_named(tensors_[i].to[o]), decoded(tensors_[i], bytes)));
    }
  }
  return outputs;
}

}  // namespace ggufmill::testing
