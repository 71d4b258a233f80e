#pragma once
// Finds the tensors that llama.cpp's loader expects of a model's architecture and that the model is missing. The facts
// are data: configs/complete_models.tsv.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

struct WrongShape {
  std::string name;
  bool is_certain = false;  // empty, transposed, or other than in most layers; otherwise, the metadata may be wrong
  bool is_odd = false;      // llama.cpp expects a size that models do not always have
  Shape shape;              // what it has
  std::string expected;     // "64 x 320"; "?" for a size that is not known
  std::string numbers;      // where the sizes come from, "n_embd x n_vocab"
};

// Tensors are named as in GGUF.
struct ModelHoles {
  std::vector<std::string> missing;     // without them llama.cpp does not load the model
  std::vector<std::string> doubtful;    // llama.cpp loads the model, but other layers or models have the tensor
  std::vector<WrongShape> misshapen;    // llama.cpp does not load the model
  std::vector<std::string> unknown;     // biases that llama.cpp has no use for, with which it does not load the model
  std::optional<std::uint64_t> layers;  // number of layers according to the metadata
  bool is_known = false;                // the table has the architecture

  bool empty() const { return missing.empty() && doubtful.empty() && misshapen.empty() && unknown.empty(); }
};

// Returns the holes of a model, in the order of the table, then of the layers. A model of an architecture that is not
// in the table has only those of layers that are missing a tensor of most other layers. Reads metadata and shapes only.
// Pure; thread-safe.
ModelHoles find_holes(const Model& model);

struct MissingTensor {
  std::string name;  // for people
  std::optional<std::uint64_t> layer;
};
// Describes missing tensors, at least one, in one line: "12 of 290 tensors are missing: layers 28 to 31; config.json
// says 32 layers, the files hold 28". `present`: number of existing tensors; `layers_present`: layers with existing
// tensors, sorted; `says_layers`: "config.json says 32 layers", or empty.
std::string describe_missing(const std::vector<MissingTensor>& missing, std::uint64_t present,
                             const std::vector<std::uint64_t>& layers_present, std::string_view says_layers);
// Describes a wrong shape: "has the shape 64 x 322, but 64 x 320 is expected".
std::string describe(const WrongShape& wrong);
// Describes unknown tensors, at least one: "2 of 26 tensors are unknown to it: 'blk.0.x.bias', 'blk.1.x.bias'".
std::string describe_unknown(const std::vector<std::string>& unknown, std::size_t tensors);

}  // namespace ggufmill
