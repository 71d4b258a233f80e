#include "stages/quantize/file_type.h"

#include <algorithm>
#include <map>

#include "stages/quantize/tensor_order.h"

namespace ggufmill {
namespace {

constexpr std::uint32_t kGuessed = 1024;
constexpr std::uint32_t kMostlyNvfp4 = 39;  // has a number, but no recipe
constexpr std::uint32_t kAllF32 = 0;        // what types without a number count as

std::uint32_t number_of(const TypeInfo& type, const RecipeShelf& shelf) {
  if (type.name == "NVFP4") return kMostlyNvfp4;
  return shelf.file_type_of(std::string(type.name)).value_or(kAllF32);
}

}  // namespace

std::uint32_t guessed_file_type(const std::vector<Tensor>& tensors, const RecipeShelf& shelf) {
  std::vector<const Tensor*> by_layer;
  for (const Tensor& tensor : tensors) by_layer.push_back(&tensor);
  std::stable_sort(by_layer.begin(), by_layer.end(),
                   [](const Tensor* a, const Tensor* b) { return is_before(*a, *b); });
  std::map<const TypeInfo*, std::size_t> counts;
  const TypeInfo* most = &type_named("F32");
  std::size_t most_count = 0;
  for (const Tensor* tensor : by_layer)
    if (const std::size_t count = ++counts[tensor->type]; count > most_count) most = tensor->type, most_count = count;
  return number_of(*most, shelf) | kGuessed;
}

}  // namespace ggufmill
