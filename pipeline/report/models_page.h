#pragma once
// Models as a page for people: a treemap of their tensors, coloured by type.

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
  std::string rule;  // why it has this type; may be empty
};

struct PicturedModel {
  std::string name;
  std::vector<PicturedTensor> tensors;
};

// One page that needs no other file, with the models beside each other. Names are text, whatever they hold.
std::string models_html(const std::vector<PicturedModel>& models);

}  // namespace ggufmill
