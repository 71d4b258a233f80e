#pragma once
// Text as JSON.

#include <boost/json/value.hpp>
#include <string_view>

namespace ggufmill {

// Text of any bytes: what is no UTF-8 cannot be carried exactly and is shown with escapes, in quotes.
boost::json::value json_text(std::string_view text);

// Null for what is not finite, which JSON does not have.
boost::json::value json_number(double number);

}  // namespace ggufmill
