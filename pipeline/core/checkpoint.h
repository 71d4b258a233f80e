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
  std::vector<std::string> warnings{};    // which files and tensors are missing, if MissingFiles allows that
};

// The handling of missing files of a checkpoint, or missing tensors that its index lists.
struct MissingFiles {
  bool are_allowed = false;  // read what there is
  // The way to allow them, for the help of an error: "set `allow_missing: true` in the source". Empty: there is none.
  std::string way{};
};

// Help of the option allow_missing, which everything has that refuses incomplete checkpoints.
inline constexpr const char* kAllowMissingHelp =
    "accept a checkpoint even if files or tensors are missing, with a warning";

// Opens a checkpoint. Lets a stage read a format that is implemented by another folder. `path` is a folder, a file or
// an index.
using CheckpointOpener = std::function<Result<Checkpoint>(const std::string& path, const MissingFiles& missing)>;

namespace notes {
// Path of config.json and the architecture with which the source was read, if the source is a checkpoint.
inline constexpr Note<std::string> kCheckpointConfig{"checkpoint_config"};
inline constexpr Note<std::string> kCheckpointArchitecture{"checkpoint_architecture"};
// Folders and files of architecture maps that were added to the built-in ones, each followed by a NUL.
inline constexpr Note<std::string> kCheckpointMaps{"checkpoint_maps"};
// The text of config.json, if it was made from the model's metadata and is to be written with the tensors.
inline constexpr Note<std::string> kRestoredConfig{"restored_config"};
}  // namespace notes

inline void note_checkpoint_maps(const std::vector<std::string>& paths, Notes& notes) {
  std::string all;
  for (const std::string& path : paths) all += path + '\0';
  notes.set(notes::kCheckpointMaps, std::move(all));
}
inline std::vector<std::string> noted_checkpoint_maps(const Notes& notes) {
  const std::string all = notes.get(notes::kCheckpointMaps);
  std::vector<std::string> paths;
  for (std::size_t begin = 0, end; (end = all.find('\0', begin)) != all.npos; begin = end + 1)
    paths.push_back(all.substr(begin, end - begin));
  return paths;
}

// The checkpoint from which a model was read.
struct CheckpointOrigin {
  std::string config;               // path of its config.json; empty: it is made from the model's metadata
  std::string architecture;         // name of a map, or a file; empty: taken from config.json
  Origin asked;                     // place in the pipeline file that asks for it
  std::vector<std::string> maps{};  // folders and files of maps that are added to the built-in ones
};
// The reverse conversion: returns a model's tensors under the names and in the form that they had in the checkpoint.
// Lets a sink use the knowledge of another folder.
using CheckpointRestorer = std::function<Result<Model>(Model model, const CheckpointOrigin& origin)>;

}  // namespace ggufmill
