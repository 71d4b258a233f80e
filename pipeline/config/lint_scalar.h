#pragma once
// The lint of one scalar. Private to config.

#include <optional>

#include "pipeline/config/fields.h"

namespace ggufmill {

// What is wrong with scalar `node` as a value of `spec`, whose kind is none of the containers.
std::optional<Error> lint_scalar(const ConfigNode& node, const FieldSpec& spec, const Types& types);

}  // namespace ggufmill
