#include "tests/pipeline/engine_fixture.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "pipeline/core/byte_order.h"
#include "pipeline/plan/slabs.h"
#include "tests/support/files.h"
#include "tests/support/synth.h"

namespace ggufmill::testing {
namespace {

using Bytes = std::vector<std::byte>;

bool is_f32(const TypeInfo& type) { return type.name == "F32"; }

void call(const KernelChoice& choice, const ggufmill_call& arguments) {
  if (choice.kernel->run(&arguments) != GGUFMILL_OK) throw std::runtime_error("kernel failed");
}

// One matrix of a tensor after the other, each with its importance.
Bytes encoded(const Tensor& tensor, const std::vector<float>& values) {
  const TypeInfo& type = *tensor.type;
  Bytes bytes(bytes_of(type, values.size()).value());
  if (values.empty()) return bytes;
  if (is_f32(type)) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  const KernelChoice& choice = *reference_kernels().encode(type.id);
  const std::uint64_t columns = tensor.shape.columns(), rows = tensor.shape.dims[1];
  for (std::uint64_t matrix = 0; matrix < tensor.shape.rows() / rows; ++matrix) {
    std::vector<float> weights;
    if (tensor.importance && (choice.kernel->flags & (GGUFMILL_ACCEPTS_IMPORTANCE | GGUFMILL_NEEDS_IMPORTANCE)))
      weights = tensor.importance->weights(matrix).value();
    const std::uint64_t first = matrix * rows * columns;
    call(choice, {values.data() + first, bytes.data() + first / type.block_elements * type.block_bytes, rows, columns,
                  weights.empty() ? nullptr : weights.data()});
  }
  return bytes;
}

std::vector<float> decoded(const Tensor& tensor, const Bytes& bytes) {
  std::vector<float> values(tensor.shape.elements());
  if (values.empty()) return values;
  if (is_f32(*tensor.source.type)) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  call(*reference_kernels().decode(tensor.source.type->id),
       {bytes.data(), values.data(), tensor.shape.rows(), tensor.shape.columns(), nullptr});
  return values;
}

// The source's bytes of a tensor, in the host's byte order.
Bytes source_bytes(const Plan& plan, std::size_t route) {
  Tensor tensor = plan.source.tensors[route];
  tensor.type = tensor.source.type;
  std::vector<float> values(tensor.shape.elements());
  synth::fill(synth::Distribution::kNormal, route + 1, 0, values);
  return encoded(tensor, values);
}

void put(std::string& file, std::uint64_t offset, const Bytes& bytes) {
  if (!bytes.empty()) std::memcpy(file.data() + offset, bytes.data(), bytes.size());
}

}  // namespace

const Kernels& reference_kernels() {
  static const std::shared_ptr<const Kernels> kernels = Kernels::load({{}, "reference"}).value();
  return *kernels;
}

RunOptions options_for(EngineKind engine) {
  RunOptions options;
  options.engine = engine;
  return options;
}

EngineFixture::EngineFixture(const std::vector<TensorRecipe>& tensors, std::uint64_t memory) {
  plan = plan_of(tensors, folder_.path(), memory);
  std::string file(plan.source.files[0].bytes, '\0');
  for (std::size_t i = 0; i < plan.routes.size(); ++i) {
    const TensorSource& source = plan.routes[i].source;
    Bytes bytes = source_bytes(plan, i);
    if (source.big_endian) swap_words(*source.type, bytes);
    put(file, source.offset, bytes);
  }
  write_text(plan.source.files[0].path, file);
}

void EngineFixture::patch_source(std::size_t route, std::uint64_t offset, const std::string& bytes) const {
  std::fstream file(plan.source.files[0].path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(plan.routes[route].source.offset + offset));
  if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) throw std::runtime_error("patch failed");
}

std::vector<std::string> EngineFixture::names() const { return names_in(folder_.path()); }

std::vector<std::string> EngineFixture::take_outputs() const {
  std::vector<std::string> outputs;
  for (const PlannedOutput& output : plan.outputs) {
    outputs.push_back(read_text(output.files[0].path));
    std::filesystem::remove(output.files[0].path);
  }
  return outputs;
}

std::vector<std::string> EngineFixture::expected_outputs() const {
  std::vector<std::string> outputs;
  for (const PlannedOutput& output : plan.outputs) {
    outputs.emplace_back(output.files[0].bytes, '\0');
    outputs.back().replace(0, output.files[0].header.size(), output.files[0].header);
  }
  for (std::size_t i = 0; i < plan.routes.size(); ++i) {
    const Bytes source = source_bytes(plan, i);
    for (const Target& target : plan.routes[i].targets) {
      const Tensor& tensor = tensor_of(plan, target);
      put(outputs[target.output], target.offset,
          tensor.converted() ? encoded(tensor, decoded(tensor, source)) : source);
    }
  }
  return outputs;
}

}  // namespace ggufmill::testing
