#pragma once
// Shared code of the sink's tests.

#include <string>
#include <utility>
#include <vector>

#include "stages/gguf/gguf.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {

Result<std::vector<OutputFile>> lay_out(const Model& model, gguf::SinkOptions options);

// Returns the file that the engine makes from a layout if nothing is converted.
std::string assemble(const Model& model, const OutputFile& file);

// Returns a model with every metadata type, and tensors of several shapes and types.
GgufBuilder sample_model();
Model model_of(const GgufBuilder& builder, const TempDir& folder);

// Returns the layout in shards, as out/m.gguf.
std::vector<OutputFile> shards_of(const Model& model, gguf::SinkOptions options);

}  // namespace ggufmill
