#pragma once
// Opens a model given only its path, for code that inspects models but does not write any.

#include <string>

#include "pipeline/core/model.h"
#include "stages/huggingface/huggingface_source.h"

namespace ggufmill {

// Opens `path`, which is one of:
//   a folder with config.json    a checkpoint, opened as the model that the source `huggingface` makes from it with
//                                the options `how`, except for their folder
//   a folder without one, *.safetensors or *.safetensors.index.json    tensors without conversion and metadata
//   anything else                a GGUF file, or the first of its shards, with the types in `types`
// Reads headers, never weights. Returns the errors of the sources; exit code 4 for malformed files.
Result<Model> open_model(const std::string& path, huggingface::SourceOptions how, const Types& types);

}  // namespace ggufmill
