#pragma once
// Reads the files: magic and version, seven parameters, the vocabulary, then each tensor after its description.

#include "stages/ggml/ggml.h"

namespace ggufmill::ggml {

// Reads a model as make_ggml_source() documents.
Result<Model> read_model(const SourceOptions& options);

}  // namespace ggufmill::ggml
