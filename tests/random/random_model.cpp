#include "tests/random/random_model.h"

#include <fmt/format.h>

#include <span>
#include <stdexcept>
#include <utility>

#include "pipeline/graph/rows_in_memory.h"
#include "tests/support/files.h"
#include "tests/support/synth.h"

namespace ggufmill::testing {
namespace {

using Dims = std::vector<std::uint64_t>;

std::uint64_t elements_of(const Dims& dims) {
  std::uint64_t elements = 1;
  for (const std::uint64_t dim : dims) elements *= dim;
  return elements;
}

// Appends 1 to 2 dimensions of 1, or none.
Dims with_trailing_ones(Random& random, Dims dims) {
  if (random.percent(60)) return dims;
  do dims.push_back(1);
  while (dims.size() < 4 && random.percent(25));
  return dims;
}

class ModelMaker {
 public:
  ModelMaker(Random& random, const Kernels& kernels, ModelTypes types)
      : random_(random), kernels_(kernels), types_(types) {}

  RandomModel make() {
    model_.layers = static_cast<unsigned>(random_.from(1, 5));
    columns_ = random_.pick<std::uint64_t>({32, 64, 256, 256, 512});
    matrix_type_ = type_of_matrices();
    norm_ = with_trailing_ones(random_, {columns_});
    has_experts_ = random_.percent(30);
    add("token_embd.weight", {columns_, random_.from(1, 12)}, matrix_type_);
    for (unsigned layer = 0; layer < model_.layers; ++layer) add_layer(layer);
    add("output_norm.weight", norm_, "F32");
    if (random_.percent(60)) add("output.weight", {columns_, random_.from(1, 12)}, matrix_type_);
    return std::move(model_);
  }

 private:
  std::string type_of_matrices() {
    if (types_ == ModelTypes::kFloats) return random_.pick({"F32", "F16", "BF16"});
    if (columns_ % 256 == 0 && random_.percent(15)) return random_.pick({"Q4_K", "Q6_K"});
    return random_.pick({"F32", "F32", "F16", "BF16", "Q8_0", "Q4_0"});
  }

  void add(const std::string& name, Dims dims, const std::string& type) {
    model_.tensors.push_back(random_tensor(random_, kernels_, name, std::move(dims), type));
  }

  void add_layer(unsigned layer) {
    const auto named = [&](const char* part) { return fmt::format("blk.{}.{}.weight", layer, part); };
    const std::uint64_t rows = random_.from(1, 9);
    add(named("attn_norm"), norm_, random_.percent(90) ? "F32" : "F16");
    add(named("attn_q"), {columns_, rows}, matrix_type_);
    add(named("attn_v"), {columns_, rows}, random_.percent(80) ? matrix_type_ : "F32");
    if (random_.percent(50)) add(named("attn_output"), {columns_, columns_ / 8}, matrix_type_);
    add(named("ffn_norm"), norm_, "F32");
    if (has_experts_) {
      const std::uint64_t experts = random_.from(1, 4);
      add(named("ffn_gate_inp"), {columns_, experts}, "F32");
      add(named("ffn_up_exps"), {columns_, rows, experts}, matrix_type_);
    }
    add(named("ffn_up"), with_trailing_ones(random_, {columns_, rows}), matrix_type_);
    add(named("ffn_down"), {columns_, random_.from(1, 9)}, matrix_type_);
    // Recipes leave tensors alone that are not weights, so any row length will do.
    if (random_.percent(40))
      add(fmt::format("blk.{}.odd.table", layer), odd_shape(), random_.pick({"F32", "F32", "F16"}));
  }

  Dims odd_shape() {
    switch (random_.below(8)) {
      case 0:
        return {1};
      case 1:
        return {1, random_.from(1, 300)};
      case 2:
        return {1, 1, 1, 1};
      case 3:
        return {32, 2, 3, 2};
      case 4:
        return {random_.from(2, 40), 3};
      case 5:
        return {columns_, 1, 2};
      case 6:
        return {random_.from(2, 40)};
      default:
        return {columns_, 0};
    }
  }

  Random& random_;
  const Kernels& kernels_;
  ModelTypes types_;
  RandomModel model_;
  std::uint64_t columns_ = 0;
  std::string matrix_type_;
  Dims norm_;
  bool has_experts_ = false;
};

}  // namespace

std::uint64_t ModelTensor::elements() const { return elements_of(dims); }

std::string converted_rows(const Kernels& kernels, const std::string& bytes, const TypeInfo& from, const TypeInfo& to,
                           std::uint64_t columns) {
  const std::uint64_t row = row_bytes(from, columns);
  std::string into(row == 0 ? 0 : bytes.size() / row * row_bytes(to, columns), '\0');
  if (into.empty() || &from == &to) return bytes;
  const Status done =
      convert_rows({&from, as_bytes(bytes), &to, std::as_writable_bytes(std::span(into.data(), into.size())), columns},
                   kernels, {.threads = 1});
  if (!done) throw std::runtime_error(render(done.error()));
  return into;
}

ModelTensor random_tensor(Random& random, const Kernels& kernels, std::string name, std::vector<std::uint64_t> dims,
                          const std::string& type) {
  std::vector<float> values(elements_of(dims));
  synth::fill(random.pick({synth::Distribution::kNormal, synth::Distribution::kNorm, synth::Distribution::kOutliers}),
              random.next(), 0, values);
  const std::string floats(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  ModelTensor tensor{std::move(name), std::move(dims), &type_named(type)};
  tensor.bytes = std::make_shared<const std::string>(
      converted_rows(kernels, floats, type_named("F32"), *tensor.type, tensor.columns()));
  return tensor;
}

RandomModel random_model(Random& random, const Kernels& kernels, ModelTypes types) {
  return ModelMaker(random, kernels, types).make();
}

}  // namespace ggufmill::testing
