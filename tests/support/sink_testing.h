#pragma once
// What the tests of the sink share.

#include <string>
#include <utility>
#include <vector>

#include "stages/gguf/gguf.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {

ConfigNode path_node(std::string path);
ConfigNode options_node(std::string path, std::string key, std::string value);

// What the engine makes of a layout when nothing is converted.
std::string assemble(const Model& model, const OutputFile& file);

// Every metadata type, and tensors of several shapes and types.
GgufBuilder sample_model();
Model model_of(const GgufBuilder& builder, const TempDir& folder);

// The layout as out/m.gguf in shards.
std::vector<OutputFile> shards_of(const Model& model, const std::string& key, const std::string& value);

}  // namespace ggufmill
