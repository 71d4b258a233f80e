#pragma once
// Parses model names such as "some-org/Some-Model-7B-Chat-v0.3". The rules, and the format of a size, follow llama.cpp
// (gguf-py/gguf/metadata.py and utility.py).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill::huggingface {

// Number of weights, as counted for the size label: experts (tensors "..._exps...") are counted once and separately.
struct WeightCount {
  std::uint64_t total = 0;
  std::uint64_t shared = 0;   // everything except experts
  std::uint64_t expert = 0;   // one expert in every layer
  std::uint64_t experts = 0;  // per layer, on average
  bool is_adapter = false;    // the weights that an adapter changes, which need not be all of the model's
};
WeightCount count_weights(const std::vector<Tensor>& tensors);

// Formats a size label with at least two digits: "1.7M", "4x300K".
std::string size_label(const WeightCount& count);

// Parts of a model's name, as written; nullopt for missing parts.
struct ModelId {
  std::optional<std::string> name, organization, basename, finetune, version, size_label;
};

// Parses a model id. `weights` is the actual number of weights; 0 if unknown. A size far from that number does not
// count as a size but as part of `finetune`; for an adapter, only if it is far below. The word "LoRA" in the name of an
// adapter has no meaning. For an id with a space, only the name is set.
ModelId read_model_id(std::string_view id, const WeightCount& weights);

// Returns a name as a title: "some-model v2 7B" becomes "Some Model v2 7B": capitalizes lowercase words, except
// versions and words that begin with a digit.
std::string model_title(std::string_view name);

}  // namespace ggufmill::huggingface
