#pragma once
// Which tensors of a model go into which file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/core/stage.h"

namespace ggufmill::gguf {

struct SinkOptions {
  std::string path;
  std::optional<std::uint64_t> shard_size;     // most bytes of tensor data, padding included, in a file
  std::optional<std::uint64_t> shard_tensors;  // most tensors in a file; at least 1
  bool as_source = false;                      // the shards that the source has
  bool sharded() const { return shard_size || shard_tensors || as_source; }
};

// One file, or with limits as many as needed (one at least), named as shards. Metadata is in the first, without the
// model's own split.* keys; each shard has its own ones. Exit code 2 for what cannot be written: a tensor larger than
// shard_size, more than 65535 shards, a bad general.alignment, names that are there twice.
Result<std::vector<OutputFile>> lay_out_files(const Model& model, const SinkOptions& options);

}  // namespace ggufmill::gguf
