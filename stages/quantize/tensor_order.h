#pragma once
// The order in which llama.cpp's quantizer writes tensors: those outside layers by name, then layer by layer, by name.

#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

bool is_before(const Tensor& a, const Tensor& b);
void sort_by_layer(std::vector<Tensor>& tensors);

}  // namespace ggufmill
