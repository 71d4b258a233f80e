#pragma once
// JSON as people write it.

#include <boost/json/value.hpp>
#include <string>

namespace ggufmill {

// Returns the value as JSON without spaces. A number that is not an integer type is written with the fewest digits that
// give it back, as 4.0 or 1e-05, where boost::json::serialize() writes 4E0 and 1E-5. Numbers that JSON does not have
// are written as Python does: NaN, Infinity, -Infinity.
std::string written_json(const boost::json::value& value);

}  // namespace ggufmill
