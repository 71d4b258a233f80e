#pragma once
// A checkpoint as its files have it: tensors by their own names, nothing interpreted. What a source makes a model of.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

struct CheckpointTensor {
  std::string name;
  // An extent of one of the files, in its type there; of a file of PyTorch it may also be a view put together of one.
  // Dimensions are in GGUF's order, the row length first; a scalar is
  // one element of rank 1, and of more than four dimensions the slowest are one.
  ExpressionRef values;
  std::vector<std::uint64_t> dims;  // as the file has them, the slowest first; of a scalar none
};

struct CheckpointFile {
  SourceRef source;
  std::vector<std::pair<std::string, std::string>> metadata;  // what the file says about itself, in its order
};

struct Checkpoint {
  std::vector<CheckpointFile> files;      // in order of name; an index, where there is one, is the last
  std::vector<CheckpointTensor> tensors;  // in the order of the files, in a file in its order; no name twice
};

// Opens a checkpoint: how a stage reads a format that another one knows. `path`: a folder, a file or an index.
using CheckpointOpener = std::function<Result<Checkpoint>(const std::string& path)>;

namespace notes {
// The path of config.json and the architecture that the source was read with, where it is a checkpoint.
inline constexpr Note<std::string> kCheckpointConfig{"checkpoint_config"};
inline constexpr Note<std::string> kCheckpointArchitecture{"checkpoint_architecture"};
}  // namespace notes

// Which checkpoint a model came from.
struct CheckpointOrigin {
  std::string config;        // the path of its config.json
  std::string architecture;  // a built-in map's name, or a file; empty: as config.json says
  Origin asked;              // where the pipeline file says so
};
// The way back: a model's tensors under the names and in the form that they had in the checkpoint. How a sink uses what
// another folder knows.
using CheckpointRestorer = std::function<Result<Model>(Model model, const CheckpointOrigin& origin)>;

}  // namespace ggufmill
