#pragma once
// Changes to the tensors of a GGUF file: some are dropped, renamed, or taken from other files.

#include <string>
#include <utility>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

// A tensor that is copied from another GGUF file.
struct TakenTensor {
  std::string name;  // what it is called in the edited file
  std::string path;  // the other file, or the first of its shards
  std::string from;  // its name there
};

struct TensorChanges {
  std::vector<std::string> drop{};  // patterns; see Pattern
  std::vector<std::pair<std::string, std::string>> rename{};
  std::vector<TakenTensor> take{};

  bool empty() const { return drop.empty() && rename.empty() && take.empty(); }
};

// A tensor that an edit changes.
struct TensorChange {
  std::string change;       // "drops", "renames", or "takes"
  std::string name;         // after a renaming, the new name
  std::string from{};       // old name, or the file and the tensor that it is taken from: "other.gguf:NAME"
  std::string described{};  // "64 x 320 Q8_0, 21.76 KB"
  std::string replaced{};   // the same of the tensor that a taken one replaces; empty: it is added
};

// Returns a line about a change: "drops tensor NAME: 64 x 320 Q8_0, 21.76 KB".
std::string describe(const TensorChange& change);

// Splits "NAME=OTHER.gguf:NAME". Without the second name, both are the same. Fails with exit code 2, naming `option`.
Result<TakenTensor> parse_taken(const std::string& name, const std::string& from, const std::string& option);

// Changes the tensors of `model`, whose first file is `path`: drops, then renames, then takes. A taken tensor has the
// position of the one that it replaces, or is the last; all shards of the models that it is taken from
// become files of `model`. Reads the headers of the other files, and no weights. Fails
// with exit code 2 for a pattern that matches nothing, a name that does not exist or would exist twice, and a tensor
// whose shape or byte order is not that of the one or the file that it goes to; 4 for a malformed file.
Result<std::vector<TensorChange>> change_tensors(const std::string& path, const TensorChanges& changes,
                                                 const Types& types, Model& model);

}  // namespace ggufmill
