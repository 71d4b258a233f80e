#pragma once
// Files of torch.save with a dictionary of tensors, such as pytorch_model.bin: a zip archive of a pickle and the
// tensors' bytes, or before PyTorch 1.6 a row of pickles and the bytes after them. Source: PyTorch,
// torch/serialization.py.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/checkpoint.h"
#include "pipeline/core/error.h"
#include "pipeline/io/byte_source.h"

namespace ggufmill::huggingface {

// The tensors in the order of the dictionary; of one name set twice the later value in the place of the first. A tensor
// whose elements do not lie in their order is put together of its storage; tensors may share one. Weights are not
// touched. Exit code 4 for everything else that a pickle can hold, for what lies outside of its storage or the file,
// and for views that repeat elements.
Result<std::vector<CheckpointTensor>> read_torch_file(const std::shared_ptr<const ByteSource>& file);

// The checkpoint in a folder: the files that pytorch_model.bin.index.json names, else all pytorch_model*.bin in the
// order of their names. Nothing where the folder has neither.
Result<std::optional<Checkpoint>> read_torch_checkpoint(const std::string& folder);

}  // namespace ggufmill::huggingface
