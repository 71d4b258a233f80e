#pragma once
// Text from outside, as parts of a Markdown document (CommonMark, and the tables of GitHub Flavored Markdown).

#include <string>
#include <string_view>

namespace ggufmill {

// Returns one line of text with a backslash before every character that means something in Markdown, also in a cell of
// a table. An underscore inside a word means nothing.
std::string markdown_text(std::string_view line);

// Returns a link to a file or URL, whose special characters are percent-encoded.
std::string markdown_link(std::string_view shown, std::string_view target);

// Returns a fenced code block, without a newline at its end. The fence is longer than any in the text. Control
// characters other than newlines and tabs are shown as \xNN.
std::string markdown_code(std::string_view text, std::string_view language);

}  // namespace ggufmill
