#pragma once
// A model by its path alone, for what looks at models and makes none.

#include <string>

#include "pipeline/core/model.h"
#include "stages/huggingface/huggingface_source.h"

namespace ggufmill {

// Which of the three `path` is:
//   a folder with config.json    a checkpoint, as the model that source `huggingface` makes of it; `how` says how, its
//                                folder aside
//   a folder without one, *.safetensors or *.safetensors.index.json    tensors as they stand, without metadata
//   anything else                a GGUF file, or the first of its shards, of the types in `types`
// Reads headers, never weights. Errors are those of the sources; exit code 4 for what is malformed.
Result<Model> open_model(const std::string& path, huggingface::SourceOptions how, const Types& types);

}  // namespace ggufmill
