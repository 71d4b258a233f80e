#include "pipeline/core/model.h"

#include <charconv>

namespace ggufmill {

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
