#include "pipeline/core/model.h"

#include <fmt/format.h>

namespace ggufmill {

std::string describe(const Shape& shape) {
  if (shape.rank == 0) return "scalar";
  std::string text = std::to_string(shape.dims[0]);
  for (std::uint32_t i = 1; i < shape.rank; ++i) text += fmt::format(" x {}", shape.dims[i]);
  return text;
}

}  // namespace ggufmill
