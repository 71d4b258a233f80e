#pragma once
// Named functions of value rules that rearrange lists. See value_functions() for what each does. A missing argument
// gives a missing result. Errors carry no place.

#include <boost/json/value.hpp>
#include <span>

#include "pipeline/core/error.h"

namespace ggufmill::huggingface {

class Facts;

Result<boost::json::value> alternating(std::span<const boost::json::value> arguments, const Facts&);
Result<boost::json::value> each_element(std::span<const boost::json::value> arguments, const Facts&);
Result<boost::json::value> from_end(std::span<const boost::json::value> arguments, const Facts&);
Result<boost::json::value> indices(std::span<const boost::json::value> arguments, const Facts&);
Result<boost::json::value> joined(std::span<const boost::json::value> arguments, const Facts&);
Result<boost::json::value> number_in(std::span<const boost::json::value> arguments, const Facts&);
Result<boost::json::value> sorted_by(std::span<const boost::json::value> arguments, const Facts&);

}  // namespace ggufmill::huggingface
