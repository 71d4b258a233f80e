#pragma once
// Reads files written by torch.save that contain a dictionary of tensors, such as pytorch_model.bin: a zip archive of
// a pickle and the tensors' bytes, or before PyTorch 1.6 a sequence of pickles followed by the bytes. Source: PyTorch,
// torch/serialization.py.

#include <boost/json/value.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/checkpoint.h"
#include "pipeline/core/error.h"
#include "pipeline/io/byte_source.h"

namespace ggufmill::huggingface {

// Reads the tensors in the order of the dictionary. If a name is set twice, the later value takes the position of the
// first. The CRC-32 of the pickle is checked, those of the storages are not: weights are read by ranges, never whole.
// A tensor whose elements are not contiguous is assembled from its storage; tensors may share a storage. Does
// not read the weights. Exit code 4 for anything else that a pickle can contain, for tensors that exceed their storage
// or the file, and for views that repeat elements.
Result<std::vector<CheckpointTensor>> read_torch_file(const std::shared_ptr<const ByteSource>& file);

// Reads one member of the dictionary in a file, whatever the others are: a whole number, or the values of a tensor of
// one dimension that read_small_values() reads, as a list. Returns null if there is no such member. Exit code 4 as
// above.
Result<boost::json::value> read_torch_value(const std::shared_ptr<const ByteSource>& file, std::string_view name);

// Reads the checkpoint in a folder: the files that pytorch_model.bin.index.json lists, or all pytorch_model*.bin in
// the order of their names. Returns nullopt if the folder has neither.
// `missing`: see read_indexed_checkpoint() and check_all_shards().
Result<std::optional<Checkpoint>> read_torch_checkpoint(const std::string& folder, const MissingFiles& missing = {});

}  // namespace ggufmill::huggingface
