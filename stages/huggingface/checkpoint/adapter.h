#pragma once
// Reads adapters as PEFT stores them: adapter_config.json, and the two matrices of each adapted weight in
// adapter_model.safetensors or adapter_model.bin. Source of the names: convert_lora_to_gguf.py of llama.cpp (MIT), and
// peft/tuners/lora (Apache-2.0).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/checkpoint.h"
#include "pipeline/core/model.h"
#include "stages/huggingface/checkpoint/named_tensor.h"

namespace ggufmill::huggingface {

// The use of an adapter's pairs. More of them can be merged into weights than llama.cpp applies to a model.
enum class PairUse { kStored, kMerged };

struct Adapter {
  std::string folder;
  std::string base;  // name of its base model, as adapter_config.json has it; empty if it is not stated
  double alpha = 0;  // the products are scaled by alpha / rank
  PairUse use = PairUse::kStored;
  bool transposed = false;  // the products are transposed, as the weights of Conv1D modules are (GPT-2)
  std::vector<std::uint32_t> invocation_tokens;  // of an aLoRA
  // Under the base's names: norms as they are, then the product of each pair, without the scale above.
  std::vector<NamedTensor> tensors;
  std::vector<std::string> embeddings;  // names of those that are transposed: a row for each value of an embedding
  const TypeInfo* stored = nullptr;     // type of the first matrix
  std::vector<SourceRef> files;         // of the weights
  std::vector<std::string> warnings;
};

// Returns true for the name of a file in which PEFT saves the weights of an adapter.
bool is_adapter_file(std::string_view name);

// Returns the error for a folder without the configuration of an adapter, or for a path that is not a folder.
Error no_adapter(const std::string& folder);

// Reads the headers of an adapter, not its weights. `open` reads those of a safetensors file. Exit code 4 for what is
// not a LoRA adapter, for incomplete pairs, and for settings and tensors that a product of two matrices does not
// express (DoRA, biases, full layers).
Result<Adapter> read_adapter(const std::string& folder, const CheckpointOpener& open);

// The matrices of a weight that is a product B A.
struct LowRankPair {
  ExpressionRef a, b;
  bool swapped = false;  // they were exchanged by transposing the product an odd number of times
};
// Returns the matrices whose product has the values of an expression in which a map's operations are applied to
// products of pairs: they are applied to the matrices. Fails with exit code 4 if the result is not such a product.
// Errors carry neither a place nor a tensor name.
Result<LowRankPair> pair_of(const Expression& values, PairUse use);

}  // namespace ggufmill::huggingface
