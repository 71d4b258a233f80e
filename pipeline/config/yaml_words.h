#pragma once
// Conversion of text to scalars of a pipeline file.

#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

// Quotes `raw`, which may contain any bytes; uses single quotes if those are sufficient. A `${` is escaped, so that it
// is not read as a parameter.
std::string yaml_quoted(std::string_view raw);

// Returns a regular expression that matches exactly `text`.
std::string regex_literal(std::string_view text);
std::vector<std::string> regex_literals(const std::vector<std::string>& texts);

}  // namespace ggufmill
