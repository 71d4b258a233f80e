#include "pipeline/core/model.h"

#include <charconv>

namespace ggufmill {

std::uint64_t padded_bytes(const Tensor& tensor, const TypeInfo& type, std::uint64_t alignment) {
  const std::uint64_t bytes = bytes_of(type, tensor.shape()).value();
  return alignment == 0 ? bytes : (bytes + alignment - 1) / alignment * alignment;
}

std::uint64_t padded_bytes(const Model& model, std::uint64_t alignment) {
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : model.tensors) bytes += padded_bytes(tensor, *tensor.type, alignment);
  return bytes;
}

std::optional<std::uint64_t> layer_of(std::string_view tensor_name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!tensor_name.starts_with(kPrefix)) return {};
  std::uint64_t layer = 0;
  const char* end = tensor_name.data() + tensor_name.size();
  const auto [stop, error] = std::from_chars(tensor_name.data() + kPrefix.size(), end, layer);
  if (error != std::errc() || stop == end || *stop != '.' || layer >= kMaxLayers) return {};
  return layer;
}

}  // namespace ggufmill
