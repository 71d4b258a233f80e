#pragma once
// A page that shows models as treemaps of their tensors, coloured by type.

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/core/expression.h"

namespace ggufmill {

struct PicturedTensor {
  std::string name;
  Shape shape;
  const TypeInfo* type = nullptr;
  std::uint64_t bytes = 0;
  std::string rule;  // reason for the type; may be empty
};

struct PicturedModel {
  std::string name;
  std::vector<PicturedTensor> tensors;
};

// Returns one self-contained page with the models side by side. Names are escaped, whatever they contain.
std::string models_html(const std::vector<PicturedModel>& models);

}  // namespace ggufmill
