#pragma once
// The GGUF format as a source and a sink of pipeline files.

#include <string>

#include "pipeline/core/model.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

// Reads the headers of a model: one file, or, when it says so (split.count), it and its further shards, which are found
// by name in the same folder. GGUF versions 1 to 3, little- and big-endian. Tensors are in the order of the files; the
// metadata is that of the first file, split.* included. Weights are not touched. Exit code 4 for what is malformed.
Result<Model> read_gguf(const std::string& path);

// `gguf: PATH`, for a shard set the path of the first.
SourceSpec gguf_source();

// `gguf: PATH`, or `gguf: {path: PATH, shard_size: 20G, shard_tensors: 100}` for several files. Writes GGUF version 3,
// as the reference does: tensors one after another, each padded to the alignment, dimensions of 1 at the end left out,
// split.* keys only in shards.
SinkSpec gguf_sink();

}  // namespace ggufmill
