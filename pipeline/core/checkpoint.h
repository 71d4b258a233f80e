#pragma once
// A checkpoint as stored in its files: tensors under their original names, uninterpreted. Sources build a model from
// it.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

struct CheckpointTensor {
  std::string name;
  // An extent of one of the files, in the type stored there; for a PyTorch file, possibly a view assembled from an
  // extent. Dimensions are in GGUF order, the row length first. A scalar is one element of rank 1. If there are more
  // than four dimensions, the slowest ones are merged into one.
  ExpressionRef values;
  std::vector<std::uint64_t> dims;  // as in the file, slowest first; empty for a scalar
};

struct CheckpointFile {
  SourceRef source;
  std::vector<std::pair<std::string, std::string>> metadata;  // the file's own metadata, in file order
};

struct Checkpoint {
  std::vector<CheckpointFile> files;      // sorted by name; the index, if any, is last
  std::vector<CheckpointTensor> tensors;  // in order of files, then in file order; names are unique
};

// Opens a checkpoint. Lets a stage read a format that is implemented by another folder. `path` is a folder, a file or
// an index.
using CheckpointOpener = std::function<Result<Checkpoint>(const std::string& path)>;

namespace notes {
// Path of config.json and the architecture with which the source was read, if the source is a checkpoint.
inline constexpr Note<std::string> kCheckpointConfig{"checkpoint_config"};
inline constexpr Note<std::string> kCheckpointArchitecture{"checkpoint_architecture"};
}  // namespace notes

// The checkpoint from which a model was read.
struct CheckpointOrigin {
  std::string config;        // path of its config.json
  std::string architecture;  // name of a built-in map, or a file; empty: taken from config.json
  Origin asked;              // place in the pipeline file that asks for it
};
// The reverse conversion: returns a model's tensors under the names and in the form that they had in the checkpoint.
// Lets a sink use the knowledge of another folder.
using CheckpointRestorer = std::function<Result<Model>(Model model, const CheckpointOrigin& origin)>;

}  // namespace ggufmill
