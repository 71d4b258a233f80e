#pragma once
// The metadata set by the arguments of `ggufmill quantize`, as parts of a pipeline file. The texts are empty if no
// metadata is set.

#include "pipeline/llama_cpp/quantize_options.h"
#include "stages/prune/prune_stage.h"

namespace ggufmill {

// Returns the output's `metadata:` in the reference's order, in which all of it follows the file type: overrides,
// importance, layer count after pruning. A key given twice has its last value, at its last position. `layers_left` is
// the layer count, if layers are pruned. Adds a warning for each value that is written differently than given.
// `keys_in_place`: for a recipe with this option. The text is then to stand before `quantize:`, so that the file type
// follows; keys that exist keep their positions, and numbers are signed, as in ik_llama.cpp's llama-quantize.
Result<std::string> metadata_text(const QuantizeOptions& options, const std::optional<LayerCount>& layers_left,
                                  bool keys_in_place, std::vector<std::string>& warnings);

// Returns, as an item of `stages:`, the overrides that influence the decisions of recipes. There the output's
// `quantize`, which runs before its `metadata:`, sees them.
Result<std::string> fact_text(const QuantizeOptions& options);

// Splits "LEFT=RIGHT"; both sides must be nonempty. `form` and `example` are for the error message.
Result<std::pair<std::string, std::string>> split_word(const std::string& word, const char* form, const char* example);

}  // namespace ggufmill
