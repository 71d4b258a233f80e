#pragma once
// Conversion of text to scalars of a pipeline file.

#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

// Quotes `raw`, which may contain any bytes; uses single quotes if those are sufficient. A `${` is escaped, so that it
// is not read as a parameter.
std::string yaml_quoted(std::string_view raw);
// Returns the texts, each quoted, as a list: ['a', 'b'].
std::string yaml_quoted_list(const std::vector<std::string>& texts);

// Returns `text`, which may contain any bytes, in double quotes, with escapes that YAML reads. Bytes that are not
// UTF-8 stay.
std::string double_quoted(std::string_view text);

// Returns `text`, which must be UTF-8, as a scalar that every YAML 1.1 and 1.2 reader reads as this text: plain if it
// looks like nothing else, otherwise quoted. For files in which `${` has no meaning, such as model cards.
std::string yaml_scalar(std::string_view text);

// Returns a regular expression that matches exactly `text`.
std::string regex_literal(std::string_view text);
std::vector<std::string> regex_literals(const std::vector<std::string>& texts);

}  // namespace ggufmill
