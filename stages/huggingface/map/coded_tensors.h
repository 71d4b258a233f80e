#pragma once
// Finds integers where a map expects weights: codes of quantized weights in a layout that was not decoded.

#include <functional>
#include <string>
#include <vector>

#include "stages/huggingface/checkpoint/named_tensor.h"

namespace ggufmill::huggingface {

// Exit code 4, one error for all, if integer matrices stand where the map has rules for weights: under the weight's
// name, or in place of X.weight under another name in the same module. `is_weight`: whether the map makes a tensor of
// numbers of the one with this name. `where` is for messages: the checkpoint's folder.
Status check_no_codes(const std::vector<NamedTensor>& tensors, const std::function<bool(const std::string&)>& is_weight,
                      const std::string& where);

}  // namespace ggufmill::huggingface
