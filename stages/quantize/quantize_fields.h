#pragma once
// The fields of the stage `quantize`, and their reading.

#include "stages/quantize/decide.h"

namespace ggufmill {

struct QuantizeSettings {
  Recipe recipe;
  std::vector<TensorRule> rules;
  bool pure = false;
  bool requantize = true;
  bool fallback = false;  // of types that the user named; a recipe's own always fall back
  bool order_by_layer = true;
};

FieldSpec quantize_fields();
// `value` has passed the lint.
Result<QuantizeSettings> read_quantize(const ConfigNode& value, const RecipeShelf& shelf);

}  // namespace ggufmill
