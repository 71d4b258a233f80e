#pragma once
// The YAML at the start of a model card.

#include <string>
#include <string_view>

namespace ggufmill {

// Returns the YAML between the first line of a README.md, which must be "---", and the next "---" or the end, for
// read_foreign_yaml(). Empty if the first line is another one. An empty line takes the place of the first, so that line
// numbers are those of the file. Quotes Norwegian (`no`) in lists of languages, and replaces tabs, which YAML forbids
// there, with spaces.
std::string front_matter(std::string_view readme);

}  // namespace ggufmill
