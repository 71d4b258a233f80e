#pragma once
// Text as scalars of a pipeline file.

#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

// `raw` in quotes, whatever bytes it holds: single quotes where that is enough. A parameter's `${` is kept as text.
std::string yaml_quoted(std::string_view raw);

// `text` as a regular expression that matches just this text.
std::string regex_literal(std::string_view text);
std::vector<std::string> regex_literals(const std::vector<std::string>& texts);

}  // namespace ggufmill
