#pragma once
// --set PATH=VALUE: changes to a pipeline file from the command line.

#include <string>

#include "pipeline/config/fields.h"
#include "pipeline/config/yaml_reader.h"

namespace ggufmill {

// Sets the value at a dotted path, such as "outputs.0.gguf=out/a.gguf". Segments are keys of the field table, or
// indices of list items (an index one past the last appends an item); a key that contains dots is written in double
// quotes. Inside a dictionary of plain values, the rest of the path is the key:
// "stages.0.metadata.set.general.license=mit". VALUE is YAML on one line. Missing nodes on the path are added if the
// field table knows them. On an error, `root` is left unchanged. The text is appended to `texts`.
void apply_override(ConfigNode& root, const FieldSpec& fields, const std::string& argument, ConfigTexts& texts,
                    Diagnostics& errors);

}  // namespace ggufmill
