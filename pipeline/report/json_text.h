#pragma once
// JSON as text.

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

namespace ggufmill {

// Returns the value as JSON on one line, valid for any bytes in the strings: names and paths need not be UTF-8, but
// JSON must be. A byte that is not UTF-8 becomes the four characters \xNN; valid UTF-8 is kept, except that terminal
// control characters (see printable_sequence()) become \uNNNN.
std::string to_json_text(const boost::json::value& value);

// Escapes JSON for a script element of a page: nothing in it ends the element or begins a comment.
std::string script_text(std::string_view json);

// Returns text as HTML: printable(), with all markup escaped.
std::string html_text(const std::string& text);

// Returns null for a non-finite number, which JSON cannot represent.
boost::json::value json_number(double number);

}  // namespace ggufmill
