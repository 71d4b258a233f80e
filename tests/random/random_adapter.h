#pragma once
// Adapters, as sources and as files that stages read; and the importance of a model.

#include <string>
#include <vector>

#include "tests/random/random_source.h"
#include "tests/support/gguf_builder.h"

namespace ggufmill::testing {

GgufBuilder::TensorSpec as_gguf(const ModelTensor& tensor);

// Sets the names and sizes of a source that has these tensors, and writes an adapter and importance for some of them to
// `folder`.
void describe(Random& random, const Kernels& kernels, const std::vector<ModelTensor>& tensors,
              const std::string& folder, RandomSource& source);

// Writes an adapter in the format of PEFT, and the configuration of its model, to `folder`.
RandomSource random_adapter(Random& random, const Kernels& kernels, const std::string& folder);

}  // namespace ggufmill::testing
