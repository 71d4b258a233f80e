#pragma once
// Whether llama.cpp finds all tensors in a model that it expects.

#include <string>

#include "pipeline/core/model.h"

namespace ggufmill::gguf {

// Returns a warning about the tensors for which llama.cpp does not load the model: missing ones, wrong shapes,
// unknown ones, and layers beyond their number in the metadata. Empty if there are none, and for what is no model of
// its own: projectors, adapters, vocabularies, and architectures that pipeline/core/complete_model.h does not know.
// Tensors that a draft shares with its model may be missing. Reads metadata and shapes only. Pure; thread-safe.
std::string loading_warning(const Model& model);

}  // namespace ggufmill::gguf
