#pragma once
// Parameters of a pipeline file: `${NAME}` in its values.

#include <string>
#include <vector>

#include "pipeline/config/fields.h"
#include "pipeline/config/yaml_reader.h"

namespace ggufmill {

// The field of the `parameters:` block.
FieldSpec parameters_field();

// Puts the values of declared parameters where `${NAME}` stands in scalars of `root`, outside the block itself. A value
// is that of `given` ("NAME=value"), else of the environment, else the default. It replaces text and is never read as
// YAML: no parameter can add a key, close a quote or name another parameter. `$${` stands for `${`. Keys take no
// parameters. Reads the environment: not thread-safe beside setenv(). Texts of `given` are appended to `texts`.
void substitute_parameters(ConfigNode& root, const std::vector<std::string>& given, ConfigTexts& texts,
                           Diagnostics& errors);

}  // namespace ggufmill
