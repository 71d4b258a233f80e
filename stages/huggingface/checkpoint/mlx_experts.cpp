// Experts as mlx-lm stores them: the matrices of all experts of a layer in one tensor of three dimensions,
// X.switch_mlp.gate_proj.weight. They become the tensors of transformers, one for each expert. Source of the names:
// mlx_lm/models of mlx-lm (MIT), functions `sanitize`.

#include <fmt/format.h>

#include <utility>

#include "stages/huggingface/checkpoint/quantized_tensors.h"

namespace ggufmill::huggingface {
namespace {

struct Matrix {
  std::string_view stacked, of_expert, of_mixtral;
};
constexpr Matrix kMatrices[] = {
    {"gate_proj", "gate_proj", "w1"}, {"down_proj", "down_proj", "w2"}, {"up_proj", "up_proj", "w3"}};

}  // namespace

Status split_mlx_experts(QuantizedTensors& checkpoint) {
  constexpr std::string_view kSwitch = ".switch_mlp.", kWeight = ".weight", kMixtral = ".block_sparse_moe";
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const NamedTensor& tensor = checkpoint.tensors[i];
    const std::size_t at = tensor.name.find(kSwitch);
    if (at == tensor.name.npos || tensor.values->shape.rank != 3 || checkpoint.skipped.contains(i)) continue;
    const std::string block = tensor.name.substr(0, at), rest = tensor.name.substr(at + kSwitch.size());
    for (const Matrix& matrix : kMatrices) {
      if (rest != std::string(matrix.stacked) + std::string(kWeight)) continue;
      Shape shape = tensor.values->shape;
      const std::uint64_t experts = std::exchange(shape.dims[2], 1);
      shape.rank = 2;
      for (std::uint64_t expert = 0; expert < experts; ++expert) {
        BOOST_OUTCOME_TRY(ExpressionRef values,
                          checkpoint.of_tensor(tensor.name, expressions::slice(tensor.values, 2, expert, 1)));
        BOOST_OUTCOME_TRY(values, checkpoint.of_tensor(tensor.name, expressions::reshape(std::move(values), shape)));
        const std::string_view name = block.ends_with(kMixtral) ? matrix.of_mixtral : matrix.of_expert;
        checkpoint.make(fmt::format("{}.experts.{}.{}{}", block, expert, name, kWeight), std::move(values));
      }
      checkpoint.skipped.insert(i);
    }
  }
  return ok();
}

}  // namespace ggufmill::huggingface
