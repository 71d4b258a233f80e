#pragma once
// --set PATH=VALUE: changes to a pipeline file from the command line.

#include <string>

#include "pipeline/config/fields.h"
#include "pipeline/config/yaml_reader.h"

namespace ggufmill {

// Sets the value at a dotted path, e.g. "outputs.0.gguf=out/a.gguf": keys as in the field table, numbers for list items
// (the number behind the last adds one), a key with dots in double quotes. Within a dictionary of plain values the rest
// of the path is the key: "stages.0.metadata.set.general.license=mit". VALUE is YAML on one line. What is missing on
// the way is added where the field table knows it. On an error `root` stays as it is. The text is appended to `texts`.
void apply_override(ConfigNode& root, const FieldSpec& fields, const std::string& argument, ConfigTexts& texts,
                    Diagnostics& errors);

}  // namespace ggufmill
