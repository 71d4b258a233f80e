#include "stages/quantize/tensor_order.h"

#include <algorithm>
#include <cstdio>

namespace ggufmill {
namespace {

// N of "blk.N", read as sscanf("blk.%d.") does; -1 for other names.
int scanned_layer(const std::string& name) {
  int layer = -1;
  return std::sscanf(name.c_str(), "blk.%9d.", &layer) == 1 ? layer : -1;
}

}  // namespace

bool is_before(const Tensor& a, const Tensor& b) {
  const int layer_a = scanned_layer(a.name);
  const int layer_b = scanned_layer(b.name);
  return layer_a != layer_b ? layer_a < layer_b : a.name < b.name;
}

void sort_by_layer(std::vector<Tensor>& tensors) { std::stable_sort(tensors.begin(), tensors.end(), is_before); }

}  // namespace ggufmill
