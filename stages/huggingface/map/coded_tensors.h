#pragma once
// Finds codes of quantized weights in a layout that was not decoded, where a map expects weights.

#include <string>
#include <vector>

#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/map/trainer_names.h"

namespace ggufmill::huggingface {

// Exit code 4, one error for all, if matrices of integers, or of 8-bit floats with scales beside them, stand where the
// map has rules for weights: under the weight's name, or in place of X.weight under a name without a rule in the same
// module. `has_rule`: whether the map has a rule for the name; `is_weight`: whether one makes a tensor of numbers.
// `where` is for messages: the checkpoint's folder.
Status check_no_codes(const std::vector<NamedTensor>& tensors, const NameTest& has_rule, const NameTest& is_weight,
                      const std::string& where);

}  // namespace ggufmill::huggingface
