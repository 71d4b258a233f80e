#pragma once
// What the name of a model says: "some-org/Some-Model-7B-Chat-v0.3". The rules, and the form of a size, are
// llama.cpp's (gguf-py/gguf/metadata.py and utility.py).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

// Weights of a model as its size is counted: those of experts (tensors "..._exps...") once and apart.
struct WeightCount {
  std::uint64_t total = 0;
  std::uint64_t shared = 0;   // of everything but experts
  std::uint64_t expert = 0;   // of one expert of every layer
  std::uint64_t experts = 0;  // in a layer, on average
};
WeightCount count_weights(const std::vector<Tensor>& tensors);

// "1.7M", "4x300K": two digits at least.
std::string size_label(const WeightCount& count);

// Parts of a model's name, as written; nothing where there is none.
struct ModelId {
  std::optional<std::string> name, organization, basename, finetune, version, size_label;
};

// `weights`: how many there really are; 0: not known. A size that is far from it is none, but a part of `finetune`.
// An id with a space is a name and nothing else.
ModelId read_model_id(std::string_view id, std::uint64_t weights);

// "some-model v2 7B" -> "Some Model v2 7B": words of small letters get a capital, but versions and what begins with a
// digit.
std::string model_title(std::string_view name);

}  // namespace ggufmill
