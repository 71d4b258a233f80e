#pragma once
// Parameters of a pipeline file: `${NAME}` in its values.

#include <string>
#include <vector>

#include "pipeline/config/fields.h"
#include "pipeline/config/yaml_reader.h"

namespace ggufmill {

// Returns the field of the `parameters:` block.
FieldSpec parameters_field();

// Replaces `${NAME}` with the values of declared parameters in the scalars of `root`, outside the block itself. A value
// comes from `given` ("NAME=value"), else from the environment, else from the default. Substitution is textual and its
// result is never parsed as YAML: a parameter cannot add a key, close a quote or refer to another parameter. `$${` is
// an escaped `${`. Parameters are not allowed in keys. Reads the environment, so it is not thread-safe with respect to
// setenv(). The texts of `given` are appended to `texts`.
void substitute_parameters(ConfigNode& root, const std::vector<std::string>& given, ConfigTexts& texts,
                           Diagnostics& errors);

}  // namespace ggufmill
