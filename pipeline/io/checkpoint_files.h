#pragma once
// Reads a checkpoint that consists of one or more files of one format, with or without an index that maps tensors to
// files.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/checkpoint.h"
#include "pipeline/io/byte_source.h"

namespace ggufmill {

// Most tensors of a checkpoint, which bounds the memory of reading one; the largest in use have some 210,000.
inline constexpr std::size_t kMaxCheckpointTensors = 500'000;
// Returns the error for more than that in `path` (exit code 4).
Error too_many_tensors(const std::string& path);

struct CheckpointPart {
  std::vector<CheckpointTensor> tensors;                      // names are unique
  std::vector<std::pair<std::string, std::string>> metadata;  // as stored in the file
};
// Reads the header of one file.
using CheckpointPartReader = std::function<Result<CheckpointPart>(const std::shared_ptr<const ByteSource>& file)>;

// Reads the tensors of all files, in the given order. Exit code 4 if two files contain a tensor of the same name, if
// there are more than kMaxCheckpointTensors, or if a file is a Git LFS pointer.
Result<Checkpoint> read_checkpoint_files(const std::vector<std::string>& paths, const CheckpointPartReader& read);
// Checks that files named NAME-00001-of-00003.ENDING, as many programs name them, are all among `paths`. For a folder
// without an index. Exit code 4; or, if missing files are allowed, returns warnings that name them.
Result<std::vector<std::string>> check_all_shards(const std::vector<std::string>& paths, const MissingFiles& missing);
// Reads the files named by an index, in the order of their names; they must be in the index's folder. Exit code 4 also
// if the index lists a file or tensor that is missing, unless `missing` allows that and at least one file is there, or
// if a file contains a tensor that the index does not list.
Result<Checkpoint> read_indexed_checkpoint(const std::string& index, const CheckpointPartReader& read,
                                           const MissingFiles& missing = {});

// Adds to the help of an error about missing parts of a checkpoint how to continue without them. `what`: "it" or
// "them".
Error with_way(Error error, std::string_view what, const MissingFiles& missing);

// Returns the shape of a tensor whose dimensions are in checkpoint order, slowest first.
Shape shape_of_dimensions(const std::vector<std::uint64_t>& dims);

}  // namespace ggufmill
