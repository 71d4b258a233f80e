#pragma once
// Converts an adapter with the map of its base model: see pipeline/core/adapter.h for the result.

#include <string>
#include <vector>

#include "pipeline/core/checkpoint.h"
#include "pipeline/core/metadata.h"
#include "stages/huggingface/checkpoint/adapter.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/tensor_map.h"
#include "stages/huggingface/model_id.h"

namespace ggufmill::huggingface {

// Checks the products against the weights of the base in `folder`. Exit code 4 if a weight has another shape. Packed
// weights are not checked.
Status check_base(const Adapter& adapter, const Checkpoint& base, const std::string& folder);

// Returns norms under their names in the GGUF file, and the two matrices of each pair, to which the base's map is
// applied. Removes from the map what is about other tensors. Warns of tensors that the map drops. Exit code 4 if the
// map does something to a weight that cannot be done to two matrices.
Result<std::vector<MappedTensor>> map_adapter(const Adapter& adapter, Architecture& map, Facts& facts,
                                              std::vector<std::string>& warnings);

// Sets the metadata of an adapter with this many weights, and returns its name.
Result<ModelId> set_adapter_metadata(const Adapter& adapter, const WeightCount& weights, Metadata& metadata,
                                     std::vector<std::string>& warnings);

}  // namespace ggufmill::huggingface
