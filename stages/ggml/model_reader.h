#pragma once
// The files themselves: magic and version, seven parameters, the vocabulary, then each tensor behind its description.

#include "stages/ggml/ggml.h"

namespace ggufmill::ggml {

// What make_ggml_source() says.
Result<Model> read_model(const SourceOptions& options);

}  // namespace ggufmill::ggml
