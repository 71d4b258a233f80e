#pragma once
// JSON as text.

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

namespace ggufmill {

// On one line, and valid whatever bytes the strings hold: names and paths need not be UTF-8, and JSON must. A byte that
// is not UTF-8 becomes the four characters \xNN; what is UTF-8 stays the text that it is, with characters that steer
// a terminal (see printable_sequence()) as \uNNNN.
std::string to_json_text(const boost::json::value& value);

// JSON as a script element of a page may hold it: nothing in it ends the element or begins a comment.
std::string script_text(std::string_view json);

// Text as HTML: printable(), and nothing in it is markup.
std::string html_text(const std::string& text);

// Null for what is not finite, which JSON does not have.
boost::json::value json_number(double number);

}  // namespace ggufmill
