#pragma once
// Which tensors of a model go into which file.

#include <vector>

#include "stages/gguf/gguf.h"

namespace ggufmill::gguf {

// One file, or with limits as many as needed (one at least), named as shards. Metadata is in the first, without the
// model's own split.* keys; each shard has its own ones. Exit code 2 for what cannot be written: a tensor larger than
// shard_size (but by the rule of conversion, which gives it a file of its own), more than 65535 shards, a bad
// general.alignment, names that are there twice.
Result<std::vector<OutputFile>> lay_out_files(const Model& model, const SinkOptions& options);

}  // namespace ggufmill::gguf
