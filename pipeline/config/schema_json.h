#pragma once
// JSON for the schema: values from YAML text, and printing for people. Private to config.

#include <boost/json.hpp>
#include <string>

#include "pipeline/config/fields.h"

namespace ggufmill {

// A default or an example of a field, as the schema's own type of value; null when the text is no YAML.
boost::json::value json_of(const std::string& yaml, const FieldSpec& spec);

// Two spaces a level; what is short stays on one line.
std::string pretty(const boost::json::value& value);

}  // namespace ggufmill
