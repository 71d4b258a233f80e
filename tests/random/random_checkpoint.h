#pragma once
// Random checkpoint folders of Hugging Face.

#include <string>

#include "tests/random/random_source.h"

namespace ggufmill::testing {

// Writes a tiny checkpoint of Llama to `folder`, in safetensors or files of PyTorch. If ../shared is present, one in
// seven has several parts instead: a text model, a projector and a draft. Throws std::runtime_error.
RandomSource random_checkpoint(Random& random, const Kernels& kernels, const std::string& folder);

}  // namespace ggufmill::testing
