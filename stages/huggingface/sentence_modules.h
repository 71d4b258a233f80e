#pragma once
// The modules of a checkpoint of sentence-transformers, which modules.json lists in the order in which they run: the
// transformer, the pooling of its results, and modules that change the pooled embedding.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "stages/huggingface/checkpoint/checkpoint_files.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/values.h"

namespace ggufmill::huggingface {

// A linear layer after the pooling.
struct DenseModule {
  std::string folder;      // "2_Dense"
  std::string name;        // under which the map's rules know it, "dense_2"; empty if it is omitted
  std::string activation;  // "Tanh"; "Identity" changes nothing
  bool has_bias = false;   // according to its configuration
  std::uint64_t in = 0, out = 0;
};

// Reads modules.json and the configurations of its Dense modules. If `includes_dense` is set, the map can write them,
// and each of them has a name; the facts `dense_2` and `dense_3` then have the members in_features and out_features.
// Those that are neither included nor among the map's further weights are omitted, with a warning. Fails with exit code
// 4 for modules that change the embedding and that llama.cpp does not support.
Result<std::vector<DenseModule>> read_dense_modules(const Architecture& architecture, bool includes_dense, Facts& facts,
                                                    std::vector<std::string>& warnings);

// Appends the weights of a module that has a name, as "dense_2/linear.weight". Fails with exit code 4 if its tensors
// are not those of its configuration.
Status add_dense_weights(const DenseModule& module, const Facts& facts, CheckpointFiles& files,
                         std::vector<NamedTensor>& into, std::vector<SourceRef>& sources);

}  // namespace ggufmill::huggingface
