#include "stages/quantize/tensor_order.h"

#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

std::vector<std::string> sorted(const std::vector<std::string>& names) {
  std::vector<Tensor> tensors;
  tensors.reserve(names.size());
  for (const std::string& name : names) tensors.push_back(bare_tensor(name));
  sort_by_layer(tensors);
  std::vector<std::string> order;
  order.reserve(tensors.size());
  for (const Tensor& tensor : tensors) order.push_back(tensor.name);
  return order;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("tensors outside layers come first, then the layers by number, each by name") {
  CHECK(sorted({"blk.10.a", "blk.2.b", "token_embd.weight", "blk.2.a", "output.weight"}) ==
        Names{"output.weight", "token_embd.weight", "blk.2.a", "blk.2.b", "blk.10.a"});
}

TEST_CASE("names that only look like layers are outside") {
  CHECK(sorted({"blk.0.a", "v.blk.1.a", "blk.x", "enc.blk.0.a"}) ==
        Names{"blk.x", "enc.blk.0.a", "v.blk.1.a", "blk.0.a"});
}
