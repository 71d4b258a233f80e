#pragma once
// The fields of the stage `quantize`, and their reading.

#include "stages/quantize/quantize_stage.h"

namespace ggufmill {

FieldSpec quantize_fields();
// `value` has passed the lint.
Result<QuantizeStageOptions> read_quantize(const ConfigNode& value, const RecipeShelf& shelf);

}  // namespace ggufmill
