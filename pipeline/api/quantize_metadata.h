#pragma once
// The metadata that the arguments of `ggufmill quantize` set, as parts of a pipeline file. All empty where there is
// none.

#include "pipeline/api/quantize_options.h"
#include "stages/prune/prune_stage.h"

namespace ggufmill {

// The output's `metadata:`, in the reference's order, which puts all of it after the file type: overrides, importance,
// pruning's count of layers. A key that is there twice has its last value, at its last place.
// `layers_left`: that count, where layers are pruned. Adds to `warnings` what is written otherwise than it is given.
Result<std::string> metadata_text(const QuantizeOptions& options, const std::optional<LayerCount>& layers_left,
                                  std::vector<std::string>& warnings);

// The overrides that the recipes' decisions follow, as an item of `stages:`: there the `quantize` of the output, which
// comes before its `metadata:`, sees them.
Result<std::string> fact_text(const QuantizeOptions& options);

// Splits "LEFT=RIGHT"; both must be there. `form` and `example` are for the error.
Result<std::pair<std::string, std::string>> split_word(const std::string& word, const char* form, const char* example);

}  // namespace ggufmill
