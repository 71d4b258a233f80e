#pragma once
// A checkpoint in one or several files of one format, with or without an index that says which tensor is in which file.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/core/checkpoint.h"
#include "pipeline/io/byte_source.h"

namespace ggufmill {

struct CheckpointPart {
  std::vector<CheckpointTensor> tensors;                      // no name twice
  std::vector<std::pair<std::string, std::string>> metadata;  // what the file says about itself
};
// Reads the header of one file.
using CheckpointPartReader = std::function<Result<CheckpointPart>(const std::shared_ptr<const ByteSource>& file)>;

// The tensors of all files, in this order. Exit code 4 for a name that two files have, and for a pointer of Git LFS.
Result<Checkpoint> read_checkpoint_files(const std::vector<std::string>& paths, const CheckpointPartReader& read);
// Those of the files that an index names, in the order of their names; they lie beside it. Exit code 4 also for files
// and tensors that the index has and the folder has not, and the other way round.
Result<Checkpoint> read_indexed_checkpoint(const std::string& index, const CheckpointPartReader& read);

// The shape of a tensor whose dimensions are in the order of a checkpoint, the slowest first.
Shape shape_of_dimensions(const std::vector<std::uint64_t>& dims);

}  // namespace ggufmill
