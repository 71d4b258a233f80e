#pragma once
// A map's options for decoding quantized weights.

#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/lifetime.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/checkpoint/quantized_checkpoint.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/values.h"

namespace ggufmill::huggingface {

// Returns the options for these tensors, which have the names that the map's rules see. The result refers to
// `architecture`. Exit code 4 for numbers of rows or ranks that the configuration does not have.
Result<DecodeOptions> decode_options(GGUFMILL_OUTLIVES_RESULT const Architecture& architecture, const Facts& facts,
                                     const std::vector<NamedTensor>& tensors, Blocks blocks, OutType out_type);

}  // namespace ggufmill::huggingface
