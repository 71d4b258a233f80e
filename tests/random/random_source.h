#pragma once
// Sources of random models in the file formats that ggufmill reads.

#include <string>
#include <vector>

#include "pipeline/kernels/kernels.h"
#include "tests/random/random_model.h"

namespace ggufmill::testing {

// Facts about a source that are known without ggufmill.
struct RandomSource {
  std::string text;                  // the value of `source:`
  std::vector<ModelTensor> tensors;  // those whose values a job without stages keeps; `dims` of each may differ
  std::vector<std::string> names;    // of all tensors of llama in the model
  unsigned layers = 0;               // that can be pruned; 0: none can
  std::uint64_t largest = 0;         // most bytes of a tensor as F32; 0: unknown
  bool is_checkpoint = false;
  bool has_quantized = false;        // some tensors are
  std::string adapter;               // file that `lora:` can merge; empty: none
  std::vector<std::string> adapted;  // tensors that it changes
  std::string importance;            // file that `importance:` can read; empty: none
  std::vector<std::string> parts;    // that outputs can name; empty: none
};

// Writes the files of a random source to `folder`. Throws std::runtime_error.
RandomSource random_source(Random& random, const Kernels& kernels, const std::string& folder);

}  // namespace ggufmill::testing
