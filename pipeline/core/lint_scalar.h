#pragma once
// The lint of one scalar. Private to core.

#include <optional>

#include "pipeline/core/fields.h"

namespace ggufmill {

// What is wrong with scalar `node` as a value of `spec`, whose kind is none of the containers.
std::optional<Error> lint_scalar(const ConfigNode& node, const FieldSpec& spec);

}  // namespace ggufmill
