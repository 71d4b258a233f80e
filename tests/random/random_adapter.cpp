#include "tests/random/random_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/files.h"
#include "tests/support/importance_files.h"
#include "tests/support/safetensors_builder.h"

namespace ggufmill::testing {
namespace {

bool can_be_adapted(const ModelTensor& tensor) {
  // An adapter of the embedding has its matrices the other way round.
  return tensor.dims.size() == 2 && tensor.columns() % 32 == 0 && tensor.dims[1] > 0 &&
         tensor.name != "token_embd.weight";
}

// Writes a LoRA adapter for some matrices.
void write_adapter(Random& random, const Kernels& kernels, const std::vector<ModelTensor>& tensors,
                   const std::string& folder, RandomSource& source) {
  GgufBuilder file;
  file.metadata = {{"general.architecture", metadata_string("llama")},
                   {"general.type", metadata_string("adapter")},
                   {"adapter.type", metadata_string("lora")},
                   {"adapter.lora.alpha", metadata_unsigned(MetadataType::kUint32, 4)}};
  const std::uint64_t rank = random.from(1, 3);
  for (const ModelTensor& tensor : tensors)
    if (can_be_adapted(tensor) && random.percent(30)) {
      file.tensors.push_back(
          as_gguf(random_tensor(random, kernels, tensor.name + ".lora_a", {tensor.dims[0], rank}, "F32")));
      file.tensors.push_back(
          as_gguf(random_tensor(random, kernels, tensor.name + ".lora_b", {rank, tensor.dims[1]}, "F32")));
      source.adapted.push_back(tensor.name);
    }
  if (source.adapted.empty()) return;
  source.adapter = folder + "/adapter.gguf";
  file.write(source.adapter);
}

// Writes importance of all matrices.
void write_importance(Random& random, const std::vector<ModelTensor>& tensors, const std::string& folder,
                      RandomSource& source) {
  GgufBuilder file = gguf_importance();
  for (const ModelTensor& tensor : tensors) {
    if (tensor.dims.size() < 2 || tensor.dims.size() > 3 || tensor.dims[1] == 0) continue;
    const std::uint64_t matrices = tensor.dims.size() > 2 ? tensor.dims[2] : 1;
    std::vector<float> sums(tensor.columns() * matrices);
    for (float& sum : sums) sum = static_cast<float>(random.from(1, 1000)) / 64;
    add_entry(file, tensor.name, sums, std::vector<float>(matrices, 2));
  }
  source.importance = folder + "/imatrix.gguf";
  file.write(source.importance);
}

// Returns a matrix of an adapter in the format of PEFT.
SafetensorsTensor as_safetensors(const ModelTensor& tensor, const std::string& name) {
  return {"base_model.model.model." + name, "F32", {tensor.dims[1], tensor.dims[0]}, *tensor.bytes};
}

}  // namespace

GgufBuilder::TensorSpec as_gguf(const ModelTensor& tensor) {
  return {tensor.name, tensor.dims, std::string(tensor.type->name), *tensor.bytes};
}

void describe(Random& random, const Kernels& kernels, const std::vector<ModelTensor>& tensors,
              const std::string& folder, RandomSource& source) {
  for (const ModelTensor& tensor : tensors) {
    source.names.push_back(tensor.name);
    source.largest = std::max(source.largest, tensor.elements() * sizeof(float));
  }
  write_adapter(random, kernels, tensors, folder, source);
  write_importance(random, tensors, folder, source);
}

RandomSource random_adapter(Random& random, const Kernels& kernels, const std::string& folder) {
  const std::uint64_t hidden = random.pick<std::uint64_t>({32, 64}), inner = 2 * hidden, rank = random.from(1, 8);
  const std::uint64_t layers = random.from(1, 3);
  RandomSource source;
  std::vector<SafetensorsTensor> stored;
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const std::string becomes = fmt::format("blk.{}.ffn_up.weight.lora_", layer);
    const std::string name = fmt::format("layers.{}.mlp.up_proj.lora_", layer);
    source.tensors.push_back(random_tensor(random, kernels, becomes + "a", {hidden, rank}, "F32"));
    stored.push_back(as_safetensors(source.tensors.back(), name + "A.weight"));
    source.tensors.push_back(random_tensor(random, kernels, becomes + "b", {rank, inner}, "F32"));
    stored.push_back(as_safetensors(source.tensors.back(), name + "B.weight"));
  }
  for (const char* part : {"/adapter", "/base"}) fs::create_directories(folder + part);
  write_text(folder + "/adapter/adapter_config.json",
             fmt::format(R"({{"peft_type": "LORA", "lora_alpha": 8, "r": {}}})", rank));
  write_text(folder + "/adapter/adapter_model.safetensors", safetensors_bytes(stored));
  write_text(folder + "/base/config.json",
             fmt::format(R"({{"architectures": ["LlamaForCausalLM"], "hidden_size": {}, "num_attention_heads": 4,
                              "num_hidden_layers": {}, "vocab_size": 5, "intermediate_size": {}, "rms_norm_eps": 1e-5,
                              "max_position_embeddings": 16}})",
                         hidden, layers, inner));
  source.text = fmt::format("{{lora: {{adapter: '{0}/adapter', base: '{0}/base'}}}}", folder);
  return source;
}

}  // namespace ggufmill::testing
