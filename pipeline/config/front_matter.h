#pragma once
// The YAML at the start of a model card.

#include <string>
#include <string_view>

#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/error.h"

namespace ggufmill {

// Returns the YAML between the first line of a README.md, which must be "---", and the next "---" or the end, for
// read_foreign_yaml(). Empty if the first line is another one. An empty line takes the place of the first, so that line
// numbers are those of the file. Quotes Norwegian (`no`) in lists of languages, and replaces tabs, which YAML forbids
// there, with spaces.
std::string front_matter(std::string_view readme);
// Returns what this YAML contains; kNull if there is none. Fails with exit code 4 if it cannot be read. `path` is that
// of the README.md, and `texts` has to outlive the node's users.
Result<ConfigNode> read_front_matter(std::string_view readme, const std::string& path, ConfigTexts& texts);

}  // namespace ggufmill
