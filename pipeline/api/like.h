#pragma once
// The metadata that one GGUF file can have from another of the same model.

#include <string>
#include <vector>

#include "pipeline/core/model.h"
#include "stages/metadata/metadata_stage.h"

namespace ggufmill {

struct LikeOptions {
  std::string path;             // the other file; its header may also be at an address
  bool with_tokenizer = false;  // copy the tokenizer even if its tokens are others
};

// Returns the changes that give `model`, which was read from `path`, the values of another model:
// - general.*, but what describes the file itself: architecture, type, alignment, file_type, quantization_version,
//   quantized_by, and tensor_extra.*;
// - ARCHITECTURE.*, but the keys on which names and shapes of tensors depend (sizing_keys()), lists with an item per
//   layer if the models have different numbers of layers, and tensor_data_layout;
// - tokenizer.*, including chat templates, if both have the same tokens, or `model` has none and the other has one for
//   each row of the embedding; with `with_tokenizer`, also if the tokens are others, and then keys that the other does
//   not have are removed.
// Keys that the other file does not have are otherwise kept. `warnings` gets a line if sizes or tokens differ. Fails
// with exit code 2 if the architecture or the type is another one, or the tokenizer cannot fit; 4 for a malformed file.
Result<MetadataOptions> changes_like(const std::string& path, const Model& model, const LikeOptions& options,
                                     const Types& types, std::vector<std::string>& warnings);

}  // namespace ggufmill
